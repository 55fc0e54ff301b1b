/**
 * Reads the records of a file: JSON lines, JSON objects over several lines or in a list, or CSV (RFC 4180) with a
 * header, told apart by how they begin. CSV is separated by commas, semicolons, tabs or bars: by the one that its first
 * line `sep=…` names, or else the one that the header has most of. A broken record becomes an entry with the problem,
 * and those after it are still read: after a quote that is not closed, from the next line on.
 */
import { appendFileSync, createReadStream, existsSync, statSync, truncateSync } from 'node:fs';
import type { Parsed } from '../../domain/settings.ts';
import { option, UsageError } from '../command.ts';
import { type CsvStyle, createCsvReader } from './csv.ts';
import { type Entry, type Fields, type Line, linesOf, linesOfText, MOST_SIGNS } from './lines.ts';

/** What a file is, as its first record showed. */
export type RecordForm =
  | { readonly kind: 'json' }
  /** `columns`: undefined if the header is broken; then the header's problem is the only record. */
  | { readonly kind: 'csv'; readonly columns: readonly string[] | undefined; readonly style: CsvStyle };

/** Reads records line by line. */
export interface RecordReader {
  push(line: Line): readonly Entry[];
  /** The records that are complete only once the file has ended. */
  end(): readonly Entry[];
  /** Undefined until a line that is not empty has been read. */
  readonly form: RecordForm | undefined;
}

/** A reader for one file. `separator`: of CSV, where it is not to be found out. */
export function createRecordReader(separator?: string): RecordReader {
  let csv: ReturnType<typeof createCsvReader> | undefined;
  let json: Pick<RecordReader, 'push' | 'end'> | undefined;
  let marked = false;
  return {
    push(line) {
      if (line.marked === true) marked = true;
      if (json === undefined && csv === undefined) {
        const begin = line.text.trim();
        if (line.problem === undefined && begin === '') return [];
        if (/^\[\s*(\{|$)/.test(begin)) json = createJsonReader(1);
        else if (begin.startsWith('{')) json = depthAfter(begin) > 0 ? createJsonReader(0) : JSON_LINES;
        else csv = createCsvReader(separator);
      }
      return (csv ?? (json as RecordReader)).push(line);
    },
    end: () => (csv ?? json)?.end() ?? [],
    get form(): RecordForm | undefined {
      if (json !== undefined) return { kind: 'json' };
      if (csv === undefined) return undefined;
      return { kind: 'csv', columns: csv.columns, style: { separator: csv.separator, marked } };
    },
  };
}

/** The records of a text, and what the text is. */
export function recordsOf(
  text: string,
  separator?: string,
): { readonly entries: readonly Entry[]; readonly form: RecordForm | undefined } {
  const reader = createRecordReader(separator);
  const entries = [...[...linesOfText(text)].flatMap((line) => reader.push(line)), ...reader.end()];
  return { entries, form: reader.form };
}

/** The records of a text. */
export function entriesOf(text: string): readonly Entry[] {
  return recordsOf(text).entries;
}

/** The records of bytes that arrive in pieces. */
export async function* entriesIn(pieces: AsyncIterable<Uint8Array>, reader: RecordReader): AsyncGenerator<Entry> {
  for await (const line of linesOf(pieces)) yield* reader.push(line);
  yield* reader.end();
}

/**
 * The records of a file of JSON lines that a command adds to; none if there is no such file. Leaves the file ready for
 * the next line: without an incomplete last one. Throws Error for a line that is not a record.
 */
export async function* addedTo(file: string): AsyncGenerator<{ readonly line: number; readonly value: Fields }> {
  if (!existsSync(file)) return;
  let kept = 0;
  for await (const { line, read, whole, end } of entriesIn(createReadStream(file), createRecordReader())) {
    if ('value' in read) yield { line, value: read.value };
    else if (whole) throw new Error(`${file}, line ${line}: ${read.problem}`);
    else truncateSync(file, kept);
    if ('value' in read && !whole) appendFileSync(file, '\n');
    kept = end;
  }
}

/** Adds a line to such a file, whole or not at all. Returns where it begins and where it ends, in bytes. */
export function addTo(file: string, fields: Fields): readonly [begin: number, end: number] {
  const size = sizeOf(file);
  try {
    appendFileSync(file, `${JSON.stringify(fields)}\n`);
  } catch (error) {
    if (sizeOf(file) > size) truncateSync(file, size);
    throw error;
  }
  return [size, sizeOf(file)];
}

/** The bytes of a file; 0 if there is none. */
export function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}

const NO_OBJECT = 'is not a JSON object';
const UNENDED = 'is an object that does not end';

const JSON_LINES: Pick<RecordReader, 'push' | 'end'> = {
  push({ number: line, text, problem, end, whole }) {
    if (problem === undefined && text.trim() === '') return [];
    return [{ line, end, whole, read: problem === undefined ? objectOf(text) : { problem } }];
  },
  end: () => [],
};

function objectOf(text: string): Parsed<Fields> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      const twice = repeatedName(text);
      return twice === undefined ? { value: value as Fields } : { problem: `has ${JSON.stringify(twice)} twice` };
    }
  } catch {}
  return { problem: NO_OBJECT };
}

/** Strings and marks of JSON. A string ends in its line. */
const TOKEN = /"(?:[^"\\]|\\.)*"?|[{}[\]:,]/g;

/** How deep a line leads into objects and lists. */
function depthAfter(line: string): number {
  return (line.match(TOKEN) ?? []).reduce((depth, token) => depth + stepOf(token), 0);
}

function stepOf(token: string): number {
  return /^[{[]$/.test(token) ? 1 : /^[}\]]$/.test(token) ? -1 : 0;
}

/** A name that an object has twice: programs differ in which of the two they take. */
function repeatedName(object: string): string | undefined {
  const names = new Set<string>();
  const tokens = object.match(TOKEN) ?? [];
  let depth = 0;
  for (const [place, token] of tokens.entries()) {
    depth += stepOf(token);
    if (depth !== 1 || tokens[place + 1] !== ':') continue;
    const name: string = JSON.parse(token);
    if (names.has(name)) return name;
    names.add(name);
  }
  return undefined;
}

/** Reads objects that take several lines: one after the other (`outside` 0), or in a list (1). */
function createJsonReader(outside: 0 | 1): Pick<RecordReader, 'push' | 'end'> {
  let depth = 0;
  let text = '';
  let begun: Line | undefined;
  let last: Line | undefined;
  let found = 0;
  const taken = (line: Line, read: Parsed<Fields>): Entry => {
    const entry = { line: (begun ?? line).number, end: line.end, whole: line.whole, read };
    [begun, text] = [undefined, ''];
    found++;
    return entry;
  };
  return {
    push(line) {
      if (line.problem !== undefined) return [taken(line, { problem: line.problem })];
      const entries: Entry[] = [];
      let from = 0;
      last = line;
      // No object within another begins a line: the one before was never closed.
      if (outside === 0 && begun !== undefined && line.text.startsWith('{')) {
        entries.push(taken(begun, { problem: UNENDED }));
        depth = 0;
      }
      for (const { 0: token, index } of line.text.matchAll(TOKEN)) {
        if (token === '{' && depth === outside) [begun, from] = [line, index];
        else if (depth === outside && !/^[\],]$/.test(token)) entries.push(taken(line, { problem: NO_OBJECT }));
        depth += stepOf(token);
        if (token !== '}' || depth !== outside || begun === undefined) continue;
        entries.push(taken(line, objectOf(text + line.text.slice(from, index + 1))));
      }
      if (begun !== undefined) text += `${line.text.slice(begun === line ? from : 0)}\n`;
      if (text.length > MOST_SIGNS) entries.push(taken(line, { problem: `is longer than ${MOST_SIGNS} characters` }));
      return entries;
    },
    end() {
      if (begun !== undefined) return [taken(begun, { problem: UNENDED })];
      return found === 0 && last !== undefined ? [taken(last, { problem: NO_OBJECT })] : [];
    },
  };
}

/** What a record may have. */
type Role = 'input' | 'instruction' | 'label';

/** How the records of a file are read. */
export interface Reading {
  /** Of CSV, where it is not to be found out. */
  readonly separator: string | undefined;
  /** The instruction of records that have none. */
  readonly instruction: string | undefined;
  /** The fields that hold a record's parts. */
  readonly fields: Readonly<Record<Role, string>>;
}

/** What is missing in the header of CSV whose records need these parts, with what it has instead. */
export function headerProblem(
  form: RecordForm | undefined,
  { fields, instruction }: Reading,
  roles: readonly Role[] = ['input', 'instruction'],
): string | undefined {
  if (form?.kind !== 'csv' || form.columns === undefined) return undefined;
  const { columns } = form;
  const needed = roles.filter((role) => role !== 'instruction' || instruction === undefined);
  const missing = needed.map((role) => [role, fields[role]] as const).filter(([, name]) => !columns.includes(name));
  if (missing.length === 0) return undefined;
  const has = columns.map((name) => `'${name}'`).join(', ');
  const hints = [
    `${missing.map(([role]) => `--${role}-column`).join(', ')} NAME says which it is`,
    ...(missing.some(([role]) => role === 'instruction') ? ['--instruction TEXT is for records that have none'] : []),
    ...(columns.length === 1 ? ['--separator SIGN is for a file that is separated otherwise'] : []),
  ];
  return `the header has no column ${missing.map(([, name]) => `'${name}'`).join(' and ')}; it has ${has}: ${hints.join('; ')}`;
}

/** What is asked about a record, as it stands there: its text, and its instruction or else the one that is given. */
export function questionOf(
  record: Fields,
  { fields, instruction }: Reading,
): { readonly input: unknown; readonly instruction: unknown } {
  const own = record[fields.instruction] ?? '';
  return { input: record[fields.input], instruction: own === '' ? instruction : own };
}

/** The options that say how a file of records is read. */
export const RECORD_OPTIONS = {
  instruction: option('TEXT', 'the instruction of those that have none'),
  separator: option('SIGN', "what separates columns of CSV; 'tab' for a tab", 'the one that the header has most of'),
  'input-column': option('NAME', 'the field that holds the text', 'input'),
  'instruction-column': option('NAME', 'the field that holds the question', 'instruction'),
} as const;

/** The options for records that have labels. */
export const EXAMPLE_OPTIONS = {
  ...RECORD_OPTIONS,
  'label-column': option('NAME', 'the field that holds the label', 'label'),
} as const;

/** The values of those options. @throws UsageError. */
export function readingFrom(values: { readonly [name in keyof typeof EXAMPLE_OPTIONS]?: string | undefined }): Reading {
  const separator = values.separator === 'tab' || values.separator === '\\t' ? '\t' : values.separator;
  if (separator !== undefined && (separator.length !== 1 || /["\r\n\w]/.test(separator)))
    throw new UsageError(`--separator: '${separator}' is not one sign that can separate columns`);
  return {
    separator,
    instruction: values.instruction,
    fields: {
      input: values['input-column'] ?? 'input',
      instruction: values['instruction-column'] ?? 'instruction',
      label: values['label-column'] ?? 'label',
    },
  };
}

/** How records with the usual fields are read. */
export const USUAL_READING = readingFrom({});
