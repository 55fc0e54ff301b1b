/**
 * The file of what a teacher was asked: a line of JSON for each text, with what `umpire decide` writes of an answer.
 *
 *     {"input", "instruction", "label"?, "choice", "confidence", "probabilities", "model",
 *      "pupil": {"choice", "confidence"}, "basis", "input_tokens", "milliseconds"}
 *
 * An answer that is sure enough is the `label` by which `umpire learn` reads it; a person may change it. A text that
 * the teacher does not take has an `error`. A line is written when its answer is there: what was asked is asked once.
 */
import type { TeachersWord } from '../../learning/taught.ts';
import type { Fields } from '../decide/lines.ts';
import { addedTo, addTo } from '../decide/records.ts';
import type { Example, LineProblem } from './examples.ts';
import type { Scored } from './own-engine.ts';

/** A text that the teacher was asked about, and what that cost as far as its model says. */
export interface AskedText extends Pick<Example, 'line' | 'input' | 'instruction'> {
  readonly word: TeachersWord;
  /** Of instruction and input. */
  readonly tokens: number;
  readonly milliseconds: number;
}

/** What all lines of a file have in common. */
export interface AskedTerms {
  /** The teacher: a model id, or one revision. */
  readonly teacher: string;
  /** In code-unit order. */
  readonly choices: readonly string[];
  /** The digest of what is read for them. */
  readonly basis: string;
}

/** Probabilities below this are not written: what they add up to is spread evenly when the line is read. */
const LEAST = 0.001;

/**
 * Reads the file; one that does not exist has no texts. Removes an incomplete last line. `model`: the teacher's
 * revision that was asked. Throws Error for a line that is of another teacher, of other choices, or broken.
 */
export async function readAsked(
  file: string,
  terms: AskedTerms,
): Promise<{ readonly texts: readonly AskedText[]; readonly model: string | undefined }> {
  const texts: AskedText[] = [];
  let model: string | undefined;
  for await (const { line, value } of addedTo(file)) {
    const fail = (problem: string): never => {
      throw new Error(`${file}, line ${line}: ${problem}; --out names another file`);
    };
    if (typeof value.model !== 'string' || typeof value.basis !== 'string') return fail('is not what teach writes');
    const isTeachers = value.model === terms.teacher || value.model.startsWith(`${terms.teacher}@`);
    if (!isTeachers || value.model !== (model ?? value.model)) fail(`is an answer of ${value.model}`);
    if (value.basis !== terms.basis) fail('is about other choices or descriptions than the catalog has now');
    texts.push(askedText(line, value, terms.choices) ?? fail('is broken'));
    model = value.model;
  }
  return { texts, model };
}

function askedText(line: number, value: Fields, choices: readonly string[]): AskedText | undefined {
  const { input, instruction, label = '', choice, probabilities, error } = value;
  if (typeof input !== 'string' || typeof instruction !== 'string') return undefined;
  const text = {
    ...{ line, input, instruction },
    tokens: Number(value.input_tokens ?? 0),
    milliseconds: Number(value.milliseconds ?? 0),
  };
  if (error !== undefined) return { ...text, word: {} };
  if (typeof probabilities !== 'object' || probabilities === null) return undefined;
  const shown = choices.map((each) => Number(Object.hasOwn(probabilities, each) && probabilities[each as never]));
  const corrected = label === choice || label === '' ? undefined : choices.indexOf(label as string);
  if (corrected === -1 || !shown.every(Number.isFinite)) return undefined;
  const rest = 1 - shown.reduce((sum, each) => sum + each, 0);
  const hidden = shown.filter((each) => each === 0).length;
  const said = Float64Array.from(shown, (each) => (each === 0 ? Math.max(0, rest) / hidden : each));
  return { ...text, word: { said, corrected } };
}

/** Writes the outcomes of asking one revision of a teacher. */
export function createAskedWriter(file: string, model: string, { choices, basis }: AskedTerms, sure: number) {
  const write = (text: Omit<AskedText, 'word' | 'tokens' | 'milliseconds'>, fields: Fields): AskedText => {
    const { line, input, instruction } = text;
    const value = { input, instruction, ...fields, model, basis };
    addTo(file, value);
    return askedText(line, value, choices) as AskedText;
  };
  return {
    /** An answer, by choices in code-unit order, and what the catalog's own model says. Returns what is read of it. */
    answer(text: Pick<Example, 'line' | 'input' | 'instruction'>, teacher: Scored, pupil: Scored): AskedText {
      const { choice, confidence } = answerOf(teacher, choices);
      const shown = choices.flatMap((each, k) => {
        const p = teacher.probabilities[k] as number;
        return p >= LEAST ? [[each, rounded(p)]] : [];
      });
      return write(text, {
        ...(confidence >= sure ? { label: choice } : {}),
        ...{ choice, confidence, probabilities: Object.fromEntries(shown), pupil: answerOf(pupil, choices) },
        ...{ input_tokens: teacher.inputTokens, milliseconds: Math.round(teacher.timings.infer) },
      });
    },
    /** A text that the teacher does not take. Returns what is read of it. */
    refusal: (text: Pick<Example, 'line' | 'input' | 'instruction'>, { problem }: LineProblem): AskedText =>
      write(text, { error: problem }),
  };
}

function answerOf({ probabilities }: Scored, choices: readonly string[]) {
  const confidence = Math.max(...probabilities);
  return { choice: choices[probabilities.indexOf(confidence)] as string, confidence: rounded(confidence) };
}

function rounded(probability: number): number {
  return Number(probability.toFixed(6));
}
