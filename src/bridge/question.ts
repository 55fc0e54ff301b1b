/**
 * A question of either form as the service is asked it, and its answer. Every question becomes one decision, with a
 * choice for each option: nothing depends on the other questions, and, as the service sorts choices, nothing on the
 * order of the options.
 */
import { type Path, Refused } from '../front/refused.ts';
import type { Rule } from './rules.ts';

/** Questions in one request. */
export const QUESTIONS = { least: 1, most: 400 } as const;
/** Options of one question: the limit of the service's contract. */
export const OPTIONS = { least: 2, most: 300 } as const;
/** The options of a question that is answered with yes or no. */
export const YES_NO = ['yes', 'no'] as const;
/** What is asked where a question has options but no words of its own. */
const UNWORDED = {
  predicate: 'Is this true of the input?',
  choice: 'Which choice best fits the input?',
  score: 'Which level best fits the input?',
} as const;

/** One question. */
export interface Question {
  readonly instruction: string;
  /** What the model reads of each option, in the caller's order. */
  readonly options: readonly string[];
  /** Where the question is in the body, and what its options are called there. */
  readonly at: Path;
  readonly optionsField: string;
}

/** All that one request asks. */
export interface Asked {
  readonly model: string;
  readonly input: string;
  readonly questions: readonly Question[];
}

/** The answer to one question: a probability for each option, in the order of the options. */
export interface Answer {
  readonly chosen: number;
  readonly probabilities: readonly number[];
}

/** The answers in the order of the questions. */
export interface Answers {
  /** `<model_id>@<revision>`. */
  readonly model: string;
  readonly answers: readonly Answer[];
  /** Of all questions together: each reads the whole input. */
  readonly inputTokens: number;
}

/** One form of request: its rules, and how it becomes questions, answers and errors. */
export interface Form {
  readonly path: string;
  readonly rule: Rule;
  /** The field that holds what the questions are about. */
  readonly inputField: string;
  /** What a body asks that keeps the rule. Throws Refused. */
  ask(body: unknown): Asked;
  /** The answer to that body. */
  answer(body: unknown, answers: Answers): object;
  refuse(refused: Refused): { readonly status: number; readonly body: object };
}

/** A text, or a value of JSON as its JSON; empty for nothing. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);

/** What the model reads of an option with a description: the same as of a described choice of a catalog. */
export function described(label: string, description: unknown): string {
  const text = textOf(description);
  return text === '' ? label : `${label}: ${text}`;
}

/** The question, with words of its own where it has none. Throws Refused if two of its options read alike. */
export function question(kind: keyof typeof UNWORDED, asked: Question): Question {
  const { instruction, options, at, optionsField } = asked;
  if (new Set(options).size === options.length) return { ...asked, instruction: instruction || UNWORDED[kind] };
  throw new Refused('INVALID_CHOICES', 'two of them read alike', { path: [...at, optionsField] });
}

/** What the answer says beside its probabilities: the label that was chosen, or the expected level, counted from 0. */
export function said(kind: 'choice' | 'score', answer: Answer, labels: readonly unknown[]): object {
  if (kind === 'choice') return { choice: labels[answer.chosen], confidence: choiceConfidence(answer) };
  const level = answer.probabilities.reduce((sum, p, i) => sum + i * p, 0);
  return { score: sixDecimals(level), confidence: scoreConfidence(answer) };
}

/** How far the best option is above chance: 0 if all are alike, 1 if it is certain. */
function choiceConfidence({ chosen, probabilities }: Answer): number {
  const even = 1 / probabilities.length;
  return sixDecimals(((probabilities[chosen] as number) - even) / (1 - even));
}

/** How little the levels scatter around the best one: 1 if it is certain, 0 as for even probabilities or worse. */
function scoreConfidence({ chosen, probabilities }: Answer): number {
  const middle = (probabilities.length - 1) / 2;
  const spread = probabilities.reduce((sum, p, i) => sum + p * Math.abs(i - chosen), 0);
  const even = probabilities.reduce((sum, _, i) => sum + Math.abs(i - middle), 0) / probabilities.length;
  return sixDecimals(1 - spread / even);
}

/** Probabilities have six decimals; what is computed of them gets no more. */
const sixDecimals = (value: number): number => Math.max(0, Math.round(value * 1e6) / 1e6);
