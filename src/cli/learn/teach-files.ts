/**
 * The files of `umpire teach`: texts without labels, of which those are worth looking at that are unlike one another;
 * and what a teacher was asked about them, a line of JSON for each text, with what `umpire decide` writes of an answer.
 *
 *     {"input", "instruction", "label"?, "choice", "confidence", "probabilities", "model",
 *      "pupil": {"choice", "confidence"}, "basis", "input_tokens", "milliseconds"}
 *
 * An answer that is sure enough is the `label` by which `umpire learn` reads it; a person may change it. A text that
 * the teacher does not take has an `error`. A line is written when its answer is there: what was asked is asked once.
 */

import { firstOfEach } from '../../learning/near-repeats.ts';
import type { TeachersWord } from '../../learning/teaching.ts';
import type { Terminal } from '../command.ts';
import type { Fields } from '../decide/lines.ts';
import { addedTo, addTo, headerProblem, questionOf, type Reading, recordsOf } from '../decide/records.ts';
import { byDigest, type LineProblem, problemLines, type Text } from './examples.ts';
import type { Scored } from './own-engine.ts';

/** A text that the teacher was asked about, what came of it, and what that cost as far as its model says. */
export interface AskedText extends Text, TeachersWord {
  /** The teacher's revision, as `<model_id>@<revision>`. */
  readonly model: string;
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
 * Reads the file, all of one revision; one that does not exist has no texts. Removes an incomplete last line. Throws
 * Error for a line that is of another teacher, of other choices, or broken.
 */
export async function readAsked(file: string, terms: AskedTerms): Promise<readonly AskedText[]> {
  const texts: AskedText[] = [];
  for await (const { line, value } of addedTo(file)) {
    const fail = (problem: string): never => {
      throw new Error(`${file}, line ${line}: ${problem}; --out names another file`);
    };
    const { model, basis } = value;
    if (typeof model !== 'string' || typeof basis !== 'string') return fail('is not what teach writes');
    const isTeachers = model === terms.teacher || model.startsWith(`${terms.teacher}@`);
    if (!isTeachers || model !== (texts[0]?.model ?? model)) fail(`is an answer of ${model}`);
    if (basis !== terms.basis) fail('is about other choices or descriptions than the catalog has now');
    texts.push(askedText(line, { ...value, model }, terms.choices) ?? fail('is broken'));
  }
  return texts;
}

function askedText(
  line: number,
  value: Fields & Pick<AskedText, 'model'>,
  choices: readonly string[],
): AskedText | undefined {
  const { input, instruction, label = '', choice, probabilities, error, model } = value;
  if (typeof input !== 'string' || typeof instruction !== 'string') return undefined;
  const text = {
    ...{ line, input, instruction, model },
    tokens: Number(value.input_tokens ?? 0),
    milliseconds: Number(value.milliseconds ?? 0),
  };
  if (error !== undefined) return text;
  if (typeof probabilities !== 'object' || probabilities === null) return undefined;
  const shown = choices.map((each) => Number(Object.hasOwn(probabilities, each) && probabilities[each as never]));
  const corrected = label === choice || label === '' ? undefined : choices.indexOf(label as string);
  if (corrected === -1 || !shown.every(Number.isFinite)) return undefined;
  const rest = 1 - shown.reduce((sum, each) => sum + each, 0);
  const hidden = shown.filter((each) => each === 0).length;
  const said = Float64Array.from(shown, (each) => (each === 0 ? Math.max(0, rest) / hidden : each));
  return { ...text, said, corrected };
}

/**
 * Adds what one revision of the teacher, `model`, said of a text: an answer, or why it does not take the text. Returns
 * what is read of the line.
 */
export function addAsked(
  file: string,
  { line, input, instruction }: Text,
  said: Fields,
  { model, choices, basis }: AskedTerms & { readonly model: string },
): AskedText {
  const value = { input, instruction, ...said, model, basis };
  addTo(file, value);
  return askedText(line, value, choices) as AskedText;
}

/** The fields of an answer. `sure`: the confidence from which on it is a label. */
export function answerFields(teacher: Scored, pupil: Scored, choices: readonly string[], sure: number): Fields {
  const answer = answerOf(teacher, choices);
  const shown = choices.flatMap((choice, k) => {
    const p = teacher.probabilities[k] as number;
    return p >= LEAST ? [[choice, rounded(p)]] : [];
  });
  return {
    ...(answer.confidence >= sure ? { label: answer.choice } : {}),
    ...{ ...answer, probabilities: Object.fromEntries(shown), pupil: answerOf(pupil, choices) },
    ...{ input_tokens: teacher.inputTokens, milliseconds: Math.round(teacher.timings.infer) },
  };
}

function answerOf({ probabilities }: Scored, choices: readonly string[]) {
  const confidence = Math.max(...probabilities);
  return { choice: choices[probabilities.indexOf(confidence)] as string, confidence: rounded(confidence) };
}

function rounded(probability: number): number {
  return Number(probability.toFixed(6));
}

/** Texts that are looked at, at most: a random sample of more. Bounds memory. */
const MOST_TEXTS = 20_000;
/** Lines with problems that are named, at most. */
const MOST_NAMED = 20;

/**
 * The texts of a file, without those of lines that cannot be read, which are named. Throws Error for a header without
 * the columns.
 */
export function textsIn(content: string, reading: Reading, terminal: Terminal): readonly Text[] {
  const { fields } = reading;
  const { entries, form } = recordsOf(content, reading.separator);
  const header = headerProblem(form, reading);
  if (header !== undefined) throw new Error(header);
  const texts: Text[] = [];
  const problems: LineProblem[] = [];
  for (const { line, read } of entries) {
    const { input, instruction } = questionOf('value' in read ? read.value : {}, reading);
    if ('problem' in read) problems.push({ line, problem: read.problem });
    else if (typeof input === 'string' && input !== '' && typeof instruction === 'string')
      texts.push({ line, input, instruction });
    else problems.push({ line, problem: `${fields.input} and ${fields.instruction} must be texts that are not empty` });
  }
  nameSkipped(problems, terminal);
  return texts;
}

/** The texts that are unlike one another and the known ones. */
export function newTexts(
  texts: readonly Text[],
  known: readonly Pick<Text, 'input'>[],
  terminal: Terminal,
): readonly Text[] {
  const distinct = [...new Map(texts.map((text) => [JSON.stringify(asked(text)), text])).values()];
  const sample = byDigest(distinct, asked).slice(0, MOST_TEXTS);
  if (sample.length < distinct.length)
    terminal.err(`of ${distinct.length} texts ${MOST_TEXTS}, drawn at random, are looked at`);
  const repeats = repeatsOf(sample, known);
  const kept = sample.filter((text) => !repeats.has(text));
  terminal.out(`${texts.length} texts, ${kept.length} of them new and unlike one another`);
  return kept;
}

/** The texts that are nearly the same as a known one, or as one before them. */
export function repeatsOf<T extends Pick<Text, 'input'>>(
  texts: readonly T[],
  known: readonly Pick<Text, 'input'>[],
): ReadonlySet<T> {
  const first = firstOfEach([...known, ...texts].map(({ input }) => ({ input, label: '' })));
  return new Set(texts.filter((_, place) => first[known.length + place] !== known.length + place));
}

/** Names lines that are left out. */
export function nameSkipped(problems: readonly LineProblem[], terminal: Terminal): void {
  for (const line of problemLines(problems).slice(0, MOST_NAMED)) terminal.err(`${line}; left out`);
  if (problems.length > MOST_NAMED) terminal.err(`and ${problems.length - MOST_NAMED} more, left out`);
}

/** What is asked, by which a text is told from others. */
export function asked({ instruction, input }: Text): readonly string[] {
  return [instruction, input];
}
