/**
 * Labelled examples from a file: JSON lines `{"input", "instruction", "label"}`, or CSV (RFC 4180) with a header that names these columns. Every problem
 * of the file is found at once, each with its line.
 */
import { createHash } from 'node:crypto';

/** One example. */
export interface Example {
  readonly line: number;
  readonly input: string;
  readonly instruction: string;
  readonly label: string;
}

/** What a file holds. */
export interface ExampleFile {
  /** In an order that does not depend on the file's. */
  readonly examples: readonly Example[];
  /** What keeps the file from being used. */
  readonly problems: readonly string[];
  /** What is worth knowing of it. */
  readonly notes: readonly string[];
}

/** One record of a file, or what is wrong with it. */
interface Entry {
  readonly line: number;
  readonly fields: Readonly<Record<string, unknown>> | string;
}

/** Reads a file. `instruction`: for examples without one. */
export function readExamples(text: string, choices: readonly string[], instruction?: string): ExampleFile {
  const problems: string[] = [];
  const examples: Example[] = [];
  for (const { line, fields } of entriesOf(text)) {
    if (typeof fields === 'string') {
      problems.push(`line ${line}: ${fields}`);
      continue;
    }
    const example = { instruction, ...withoutEmpty(fields) } as Readonly<Record<string, unknown>>;
    const missing = ['input', 'instruction', 'label'].filter(
      (name) => typeof example[name] !== 'string' || example[name] === '',
    );
    if (missing.length > 0) problems.push(`line ${line}: ${missing.join(', ')} must be a text that is not empty`);
    else if (!choices.includes(example.label as string)) {
      problems.push(`line ${line}: the label ${JSON.stringify(example.label)} is not one of the choices`);
    } else {
      examples.push({
        line,
        input: example.input as string,
        instruction: example.instruction as string,
        label: example.label as string,
      });
    }
  }
  return { problems, ...distinct(examples, choices) };
}

/** One JSON object a line, to be kept. */
export function exampleLines(examples: readonly Example[]): string {
  return examples.map(({ input, instruction, label }) => `${JSON.stringify({ input, instruction, label })}\n`).join('');
}

/** Each text once; those under two labels not at all. */
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
  const without = choices.filter((choice) => !kept.some(({ label }) => label === choice));
  if (without.length > 0 && kept.length > 0) {
    const some = without.slice(0, 5).map((choice) => JSON.stringify(choice));
    notes.push(
      `${without.length} choices have no example (${some.join(', ')}${without.length > 5 ? ', …' : ''}); they are decided by their names`,
    );
  }
  // By a digest: folds that are cut from a sorted list must not hold texts that are alike.
  const place = new Map(kept.map((example) => [example, digest(example)]));
  return { notes, examples: kept.toSorted((a, b) => ((place.get(a) as string) < (place.get(b) as string) ? -1 : 1)) };
}

function digest({ input, instruction, label }: Example): string {
  return createHash('sha256')
    .update(JSON.stringify([label, instruction, input]))
    .digest('hex');
}

function withoutEmpty(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== '' && value !== undefined));
}

/** The records of a file of either kind: the first sign tells them apart. */
export function entriesOf(text: string): readonly Entry[] {
  return text.trimStart().startsWith('{') ? jsonEntries(text) : csvEntries(text);
}

function jsonEntries(text: string): readonly Entry[] {
  return text.split('\n').flatMap((content, place): readonly Entry[] => {
    if (content.trim() === '') return [];
    const line = place + 1;
    try {
      const value: unknown = JSON.parse(content);
      if (typeof value === 'object' && value !== null && !Array.isArray(value))
        return [{ line, fields: value as Record<string, unknown> }];
    } catch {}
    return [{ line, fields: 'is not a JSON object' }];
  });
}

function csvEntries(text: string): readonly Entry[] {
  const rows = csvRows(text.replace(/^\ufeff/u, ''));
  const [head, ...rest] = rows;
  if (head === undefined) return [];
  if (typeof head.cells === 'string') return [{ line: head.line, fields: head.cells }];
  const names = head.cells.map((cell) => cell.trim());
  return rest.map(({ line, cells }) => {
    if (typeof cells === 'string') return { line, fields: cells };
    if (cells.length !== names.length)
      return { line, fields: `has ${cells.length} columns, the header has ${names.length}` };
    return { line, fields: Object.fromEntries(names.map((name, place) => [name, cells[place]])) };
  });
}

/** Rows of CSV. An unclosed quote is a problem of the line where it opens. */
function csvRows(text: string): readonly { readonly line: number; readonly cells: readonly string[] | string }[] {
  const rows: { line: number; cells: readonly string[] | string }[] = [];
  let line = 1;
  let place = 0;
  while (place < text.length) {
    const began = line;
    const cells: string[] = [];
    for (;;) {
      let cell = '';
      if (text[place] === '"') {
        const end = closingQuote(text, place + 1);
        if (end === -1) return [...rows, { line, cells: 'has a quote that is not closed' }];
        cell = text.slice(place + 1, end).replaceAll('""', '"');
        line += cell.split('\n').length - 1;
        place = end + 1;
      } else {
        const stop = /[,\n]/g;
        stop.lastIndex = place;
        const end = stop.exec(text)?.index ?? text.length;
        cell = text.slice(place, end).replace(/\r$/, '');
        place = end;
      }
      cells.push(cell);
      if (text[place] === '\r') place++;
      if (text[place] === ',') {
        place++;
        continue;
      }
      if (place < text.length && text[place] !== '\n')
        return [...rows, { line, cells: 'has text behind a closing quote' }];
      place++;
      line++;
      break;
    }
    if (cells.length > 1 || cells[0] !== '') rows.push({ line: began, cells });
  }
  return rows;
}

function closingQuote(text: string, from: number): number {
  for (let place = text.indexOf('"', from); place !== -1; place = text.indexOf('"', place + 2)) {
    if (text[place + 1] !== '"') return place;
  }
  return -1;
}
