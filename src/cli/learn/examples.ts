/**
 * Reads labelled examples from a file: JSON lines `{"input", "instruction", "label"}`, or CSV (RFC 4180) with a header
 * that names these columns. All problems of the file are found in one pass, each with its line.
 */
import { hash } from 'node:crypto';
import { nearest } from '../../domain/nearest.ts';
import { firstOfEach } from '../../learning/near-repeats.ts';
import { plainly } from '../decide/decide.ts';
import type { Entry } from '../decide/lines.ts';
import { headerProblem, questionOf, type Reading, recordsOf, USUAL_READING } from '../decide/records.ts';

/** A text of a file. `line` is its place there, from 1. */
export interface Text {
  readonly line: number;
  readonly input: string;
  readonly instruction: string;
}

/** A text whose right choice is known. */
export interface Example extends Text {
  readonly label: string;
  /** Its own choices, in code-unit order, where a file may have them. */
  readonly choices?: readonly string[];
}

/** What is wrong with a line of a file. */
export interface LineProblem {
  readonly line: number;
  readonly problem: string;
}

/** What a file of examples holds. */
export interface ExampleFile {
  /** What labels may be. */
  readonly choices: readonly string[];
  /** In an order that does not depend on the file's. */
  readonly examples: readonly Example[];
  /** Why the file cannot be used, as far as this shows without a model. */
  readonly problems: readonly LineProblem[];
  /** All texts that can be read, also from lines with problems, so that a model can say which of them are too long. */
  readonly texts: readonly Text[];
  /** Remarks for the operator that do not keep the file from being used. */
  readonly notes: readonly string[];
}

/** How a file of examples is read. */
export interface ExampleReading extends Reading {
  /** Whether examples may have their own list `choices`. The choices of all others are then the labels of those. */
  readonly ownChoices?: boolean;
}

/** Parts that every example has. */
const PARTS = ['input', 'instruction', 'label'] as const;

/** Reads the text of a file. `given`: what labels may be; undefined for all that occur, which are then the choices. */
export function readExamples(
  text: string,
  given: readonly string[] | undefined,
  reading: ExampleReading = USUAL_READING,
): ExampleFile {
  const { fields, separator, ownChoices = false } = reading;
  const problems: LineProblem[] = [];
  let answered = 0;
  const texts: Text[] = [];
  const examples: Example[] = [];
  const { entries, form } = recordsOf(text, separator);
  const choices = given ?? labelsOf(entries, fields.label, ownChoices);
  const header = headerProblem(form, reading, PARTS);
  if (header !== undefined) problems.push({ line: 1, problem: header });
  for (const { line, read } of header === undefined ? entries : []) {
    if ('problem' in read) {
      problems.push({ line, problem: read.problem });
      continue;
    }
    const label = read.value[fields.label];
    const example = { ...questionOf(read.value, reading), label } as Omit<Example, 'line'>;
    const own = ownChoices ? read.value.choices : undefined;
    const missing = Object.entries(example).filter(([, value]) => typeof value !== 'string' || value === '');
    const { choice, error } = read.value;
    if ((label ?? '') === '' && (choice ?? error ?? '') !== '') {
      answered++;
      continue;
    }
    if (!missing.some(([part]) => part !== 'label')) texts.push({ line, ...example });
    if (missing.length > 0) problems.push({ line, problem: missingProblem(missing, fields) });
    else if (own !== undefined && !areChoices(own))
      problems.push({ line, problem: 'choices must be a list of 2 to 300 texts, none of them empty or there twice' });
    else if ((own ?? choices).includes(example.label))
      examples.push({ line, ...example, ...(own === undefined ? {} : { choices: own.toSorted() }) });
    else problems.push({ line, problem: labelProblem(example.label, own ?? choices) });
  }
  const { notes, ...kept } = distinct(examples, choices);
  const left = `${answered} lines have an answer or an error and no label; left out ('umpire review' gives them one)`;
  return { choices, problems, texts, ...kept, notes: answered === 0 ? notes : [left, ...notes] };
}

/** Problems as lines for the operator, ordered by their place in the file; those of no line, 0, come first. */
export function problemLines(problems: readonly LineProblem[]): readonly string[] {
  const sorted = problems.toSorted((a, b) => a.line - b.line);
  return sorted.map(({ line, problem }) => (line === 0 ? problem : `line ${line}: ${problem}`));
}

/** @throws Error with a line for each problem, if there are any. */
export function refuse(problems: readonly LineProblem[]): void {
  if (problems.length > 0) throw new Error(problemLines(problems).join('\n'));
}

/** The labels of records, each once and in code-unit order. */
function labelsOf(entries: readonly Entry[], field: string, ownChoices: boolean): readonly string[] {
  const labels = entries.flatMap(({ read }) =>
    'value' in read && !(ownChoices && 'choices' in read.value) ? [read.value[field]] : [],
  );
  return [...new Set(labels.filter((label) => typeof label === 'string' && label !== ''))].toSorted() as string[];
}

/** Examples as JSON lines, the form in which they are kept beside a catalog. */
export function exampleLines(examples: readonly Example[]): string {
  return examples.map(({ input, instruction, label }) => `${JSON.stringify({ input, instruction, label })}\n`).join('');
}

/** Keeps each text once, one of those that are nearly the same, and none that has two labels. */
function distinct(all: readonly Example[], choices: readonly string[]): Pick<ExampleFile, 'examples' | 'notes'> {
  const notes: string[] = [];
  const kept: Example[] = [];
  let repeated = 0;
  for (const group of Map.groupBy(all, ({ instruction, input }) => JSON.stringify([instruction, input])).values()) {
    const lines = group.map(({ line }) => line).join(', ');
    if (new Set(group.map(({ label }) => label)).size > 1)
      notes.push(`lines ${lines}: one text under several labels; left out`);
    else {
      kept.push(group[0] as Example);
      repeated += group.length - 1;
    }
  }
  if (repeated > 0) notes.push(`${repeated} examples are repeated; each text counts once`);
  // In a list sorted by text, the folds that learning cuts would hold texts that are alike.
  const sorted = byDigest(kept, ({ label, instruction, input }) => [label, instruction, input]);
  // Of many questions one text may be asked several.
  const first = firstOfEach(
    sorted.map((each) => (each.choices === undefined ? each : { ...each, input: asked(each) })),
  );
  const examples = sorted.filter((_, place) => first[place] === place);
  if (examples.length < sorted.length) {
    const pairs = sorted.flatMap(({ line }, place) =>
      first[place] === place ? [] : [`${line} and ${sorted[first[place] as number]?.line}`],
    );
    notes.push(
      `${pairs.length} of ${sorted.length} examples are nearly the same as another (lines ${some(pairs)}); of texts that are nearly the same one counts`,
    );
  }
  const without = choices.filter((choice) => !kept.some(({ label }) => label === choice));
  if (without.length > 0 && kept.length > 0) {
    const names = some(without.map((choice) => JSON.stringify(choice)));
    notes.push(`${without.length} choices have no example (${names}); they are decided by their names`);
  }
  return { notes, examples };
}

function areChoices(value: unknown): value is readonly string[] {
  if (!Array.isArray(value) || value.length < 2 || value.length > 300 || new Set(value).size < value.length)
    return false;
  return value.every((each) => typeof each === 'string' && each !== '');
}

const asked = ({ instruction, input }: Example): string => `${instruction} ${input}`;

/** The first five of a list. */
const some = (all: readonly string[]): string => `${all.slice(0, 5).join(', ')}${all.length > 5 ? ', …' : ''}`;

/** Leaves out what is nearly the same as one of the `known` examples, and says so. */
export function withoutKnown(file: ExampleFile, known: readonly Example[]): ExampleFile {
  const first = firstOfEach([...known, ...file.examples]).slice(known.length);
  const examples = file.examples.filter((_, place) => (first[place] as number) >= known.length);
  const left = file.examples.length - examples.length;
  if (left === 0) return file;
  const note = `${left} of ${file.examples.length} examples are nearly the same as ones that the catalog learned from, and are left out: it knows those`;
  return { ...file, examples, notes: [...file.notes, note] };
}

/** The same texts in an order that has nothing to do with what they say, nor with their places. */
export function byDigest<T extends Text>(texts: readonly T[], parts: (text: T) => readonly string[]): readonly T[] {
  return texts
    .map((text) => ({ text, digest: hash('sha256', JSON.stringify(parts(text))) }))
    .toSorted((a, b) => (a.digest < b.digest ? -1 : 1))
    .map(({ text }) => text);
}

function missingProblem(
  missing: readonly (readonly [part: string, value: unknown])[],
  fields: Readonly<Record<string, string>>,
): string {
  const names = missing.map(([part]) => fields[part]).join(', ');
  const number = missing.find(([, value]) => typeof value === 'number')?.[1];
  return `${names} must be a text that is not empty${number === undefined ? '' : `: write the number ${number} as "${number}"`}`;
}

function labelProblem(label: string, choices: readonly string[]): string {
  const meant = choices.find((choice) => plainly(choice) === plainly(label)) ?? nearest(label, choices);
  const hint = meant === undefined ? '' : `; did you mean ${JSON.stringify(meant)}?`;
  return `the label ${JSON.stringify(label)} is not one of the choices${hint}`;
}
