/**
 * Reads labelled examples from a file: JSON lines `{"input", "instruction", "label"}`, or CSV (RFC 4180) with a header
 * that names these columns. All problems of the file are found in one pass, each with its line.
 */
import { createHash } from 'node:crypto';
import { firstOfEach } from '../../learning/near-repeats.ts';
import { entriesOf } from '../decide/records.ts';

/** A text whose right choice is known. `line` is its place in the file, from 1. */
export interface Example {
  readonly line: number;
  readonly input: string;
  readonly instruction: string;
  readonly label: string;
}

/** What is wrong with a line of a file. */
export interface LineProblem {
  readonly line: number;
  readonly problem: string;
}

/** What a file of examples holds. */
export interface ExampleFile {
  /** In an order that does not depend on the file's. */
  readonly examples: readonly Example[];
  /** Why the file cannot be used, as far as this shows without a model. */
  readonly problems: readonly LineProblem[];
  /** All texts that can be read, also from lines with problems, so that a model can say which of them are too long. */
  readonly texts: readonly Pick<Example, 'line' | 'input' | 'instruction'>[];
  /** Remarks for the operator that do not keep the file from being used. */
  readonly notes: readonly string[];
}

/** Reads the text of a file. `instruction`: the one of examples that have none. */
export function readExamples(text: string, choices: readonly string[], instruction?: string): ExampleFile {
  const problems: LineProblem[] = [];
  const texts: Pick<Example, 'line' | 'input' | 'instruction'>[] = [];
  const examples: Example[] = [];
  for (const { line, read } of entriesOf(text)) {
    if ('problem' in read) {
      problems.push({ line, problem: read.problem });
      continue;
    }
    const example = { instruction, ...withoutEmpty(read.value) } as Readonly<Record<string, unknown>>;
    const missing = ['input', 'instruction', 'label'].filter(
      (name) => typeof example[name] !== 'string' || example[name] === '',
    );
    const { input, instruction: asked, label } = example as unknown as Omit<Example, 'line'>;
    if (!missing.includes('input') && !missing.includes('instruction')) texts.push({ line, input, instruction: asked });
    if (missing.length > 0) problems.push({ line, problem: `${missing.join(', ')} must be a text that is not empty` });
    else if (choices.includes(label)) examples.push({ line, input, instruction: asked, label });
    else problems.push({ line, problem: `the label ${JSON.stringify(label)} is not one of the choices` });
  }
  return { problems, texts, ...distinct(examples, choices) };
}

/** Problems as lines for the operator, ordered by their place in the file. */
export function problemLines(problems: readonly LineProblem[]): readonly string[] {
  return problems.toSorted((a, b) => a.line - b.line).map(({ line, problem }) => `line ${line}: ${problem}`);
}

/** The labels of a file, each once and in code-unit order, for decisions whose choices they are. */
export function labelsIn(text: string): readonly string[] {
  const labels = entriesOf(text).flatMap(({ read }) => ('value' in read ? [read.value.label] : []));
  return [...new Set(labels.filter((label) => typeof label === 'string' && label !== ''))].toSorted() as string[];
}

/** Examples as JSON lines, the form in which they are kept beside a catalog. */
export function exampleLines(examples: readonly Example[]): string {
  return examples.map(({ input, instruction, label }) => `${JSON.stringify({ input, instruction, label })}\n`).join('');
}

/** Keeps each text once, one of those that are nearly the same, and none that has two labels. */
function distinct(all: readonly Example[], choices: readonly string[]): Pick<ExampleFile, 'examples' | 'notes'> {
  const notes: string[] = [];
  const byText = new Map<string, Example[]>();
  for (const example of all) {
    const key = JSON.stringify([example.instruction, example.input]);
    byText.set(key, [...(byText.get(key) ?? []), example]);
  }
  const kept: Example[] = [];
  let repeated = 0;
  for (const group of byText.values()) {
    const lines = group.map(({ line }) => line).join(', ');
    if (new Set(group.map(({ label }) => label)).size > 1)
      notes.push(`lines ${lines}: one text under several labels; left out`);
    else {
      kept.push(group[0] as Example);
      repeated += group.length - 1;
    }
  }
  if (repeated > 0) notes.push(`${repeated} examples are repeated; each text counts once`);
  // Sorted by digest: in a list sorted by text, the folds that learning cuts would hold texts that are alike.
  const digests = new Map(kept.map((example) => [example, digest(example)]));
  const sorted = kept.toSorted((a, b) => ((digests.get(a) as string) < (digests.get(b) as string) ? -1 : 1));
  const first = firstOfEach(sorted);
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

/** The first five of a list. */
function some(all: readonly string[]): string {
  return `${all.slice(0, 5).join(', ')}${all.length > 5 ? ', …' : ''}`;
}

/** Leaves out what is nearly the same as one of the `known` examples, and says so. */
export function withoutKnown(file: ExampleFile, known: readonly Example[]): ExampleFile {
  const first = firstOfEach([...known, ...file.examples]).slice(known.length);
  const examples = file.examples.filter((_, place) => (first[place] as number) >= known.length);
  const left = file.examples.length - examples.length;
  if (left === 0) return file;
  const note = `${left} of ${file.examples.length} examples are nearly the same as ones that the catalog learned from, and are left out: it knows those`;
  return { ...file, examples, notes: [...file.notes, note] };
}

function digest({ input, instruction, label }: Example): string {
  return createHash('sha256')
    .update(JSON.stringify([label, instruction, input]))
    .digest('hex');
}

function withoutEmpty(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== '' && value !== undefined));
}
