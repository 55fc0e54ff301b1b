/**
 * Reads the records of a file: JSON lines, or CSV (RFC 4180) with a header, told apart by the first character. A broken
 * record becomes an entry with the problem, and those after it are still read: after a quote that is not closed, from
 * the next line on.
 */
import type { Parsed } from '../../domain/settings.ts';
import { type Line, linesOf, linesOfText } from './lines.ts';

/** The fields of a record by their names. Those of CSV are texts. */
export type Fields = Readonly<Record<string, unknown>>;

/** One record of a file. */
export interface Entry {
  /** The number of the line in which it begins, from 1. */
  readonly line: number;
  readonly read: Parsed<Fields>;
  /** Bytes from the beginning of the file to the end of the record. */
  readonly end: number;
  /** Whether a line feed ends it. */
  readonly whole: boolean;
}

/** What a file is, as its first record showed. */
export type RecordForm =
  | { readonly kind: 'json' }
  /** `columns`: undefined if the header is broken; then the header's problem is the only record. */
  | { readonly kind: 'csv'; readonly columns: readonly string[] | undefined };

/** Reads records line by line. */
export interface RecordReader {
  push(line: Line): readonly Entry[];
  /** The records that are complete only once the file has ended. */
  end(): readonly Entry[];
  /** Undefined until a line that is not empty has been read. */
  readonly form: RecordForm | undefined;
}

/** A reader for one file. */
export function createRecordReader(): RecordReader {
  let csv: CsvReader | undefined;
  let json = false;
  return {
    push(line) {
      if (!json && csv === undefined) {
        if (line.problem === undefined && line.text.trim() === '') return [];
        json = line.text.trimStart().startsWith('{');
        if (!json) csv = createCsvReader();
      }
      return csv?.push(line) ?? jsonEntries(line);
    },
    end: () => csv?.end() ?? [],
    get form(): RecordForm | undefined {
      if (json) return { kind: 'json' };
      return csv === undefined ? undefined : { kind: 'csv', columns: csv.columns };
    },
  };
}

/** The records of a text. */
export function entriesOf(text: string): readonly Entry[] {
  const reader = createRecordReader();
  return [...[...linesOfText(text)].flatMap((line) => reader.push(line)), ...reader.end()];
}

/** The records of bytes that arrive in pieces. */
export async function* entriesIn(pieces: AsyncIterable<Uint8Array>, reader: RecordReader): AsyncGenerator<Entry> {
  for await (const line of linesOf(pieces)) yield* reader.push(line);
  yield* reader.end();
}

function jsonEntries({ number: line, text, problem, end, whole }: Line): readonly Entry[] {
  if (problem !== undefined) return [{ line, end, whole, read: { problem } }];
  if (text.trim() === '') return [];
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return [{ line, end, whole, read: { value: value as Fields } }];
  } catch {}
  return [{ line, end, whole, read: { problem: 'is not a JSON object' } }];
}

interface CsvReader {
  push(line: Line): readonly Entry[];
  end(): readonly Entry[];
  readonly columns: readonly string[] | undefined;
}

/** UTF-16 code units of a CSV record of several lines; a longer one is taken for a quote that is not closed. */
const MOST_SIGNS = 1024 * 1024;

function createCsvReader(): CsvReader {
  let columns: readonly string[] | undefined;
  let broken = false;
  /** The lines of the record that is being read, whose last quote is still open. */
  let lines: Line[] = [];
  let signs = 0;
  let row = newRow();

  const begin = (): void => {
    lines = [];
    signs = 0;
    row = newRow();
  };
  /** The entry of the row that `lines` make up; none for the header and for an empty line. */
  const complete = (): readonly Entry[] => {
    const { cells } = row;
    const [first, last] = [lines[0] as Line, lines.at(-1) as Line];
    begin();
    if (cells.length === 1 && cells[0] === '' && first === last) return [];
    const place = { line: first.number, end: last.end, whole: last.whole };
    if (columns !== undefined) return [{ ...place, read: fieldsOf(columns, cells) }];
    const names = cells.map((cell) => cell.trim());
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice === undefined) {
      columns = names;
      return [];
    }
    broken = true;
    return [{ ...place, read: { problem: `names the column ${JSON.stringify(twice)} twice` } }];
  };
  /** Makes the first line an entry with a problem, and reads the lines after it anew. */
  const fail = (problem: string): readonly Entry[] => {
    const [first, ...rest] = lines as [Line, ...Line[]];
    begin();
    broken = columns === undefined;
    return [{ line: first.number, end: first.end, whole: first.whole, read: { problem } }, ...pushAll(rest)];
  };
  const pushAll = (all: readonly Line[]): readonly Entry[] => all.flatMap((line) => push(line));
  const push = (line: Line): readonly Entry[] => {
    if (broken) return [];
    lines.push(line);
    if (line.problem !== undefined) return lines.length === 1 ? fail(line.problem) : fail(UNCLOSED);
    signs += line.text.length + 1;
    const state = addLine(row, line.text);
    if (state === 'complete') return complete();
    if (state === 'behind') return fail('has text after a closing quote');
    return signs > MOST_SIGNS ? fail(UNCLOSED) : [];
  };

  return {
    push,
    end() {
      const entries: Entry[] = [];
      while (lines.length > 0) entries.push(...fail(UNCLOSED));
      return entries;
    },
    get columns() {
      return columns;
    },
  };
}

/** The problem of a record whose quote is open at the end of the file, or for too long. */
const UNCLOSED = 'has a quote that is not closed';

function fieldsOf(columns: readonly string[], cells: readonly string[]): Parsed<Fields> {
  if (cells.length !== columns.length)
    return { problem: `has ${cells.length} columns, the header has ${columns.length}` };
  return { value: Object.fromEntries(columns.map((name, place) => [name, cells[place]])) };
}

interface Row {
  readonly cells: string[];
  /** What has been read of the current cell in quotes. */
  cell: string;
  quoted: boolean;
}

const newRow = (): Row => ({ cells: [], cell: '', quoted: false });

/** Reads a line into a row: `open` if a quote is open at its end, `behind` if text follows a closing quote. */
function addLine(row: Row, text: string): 'complete' | 'open' | 'behind' {
  for (let place = 0; ; place++) {
    if (!row.quoted && text[place] === '"') {
      row.quoted = true;
      place++;
    }
    if (row.quoted) {
      const end = closingQuote(text, place);
      row.cell += text.slice(place, end === -1 ? undefined : end).replaceAll('""', '"');
      if (end === -1) {
        row.cell += '\n';
        return 'open';
      }
      row.cells.push(row.cell);
      row.cell = '';
      row.quoted = false;
      place = end + 1;
    } else {
      const comma = text.indexOf(',', place);
      row.cells.push(comma === -1 ? text.slice(place).replace(/\r$/, '') : text.slice(place, comma));
      place = comma === -1 ? text.length : comma;
    }
    if (place === text.length || text.slice(place) === '\r') return 'complete';
    if (text[place] !== ',') return 'behind';
  }
}

function closingQuote(text: string, from: number): number {
  for (let place = text.indexOf('"', from); place !== -1; place = text.indexOf('"', place + 2)) {
    if (text[place + 1] !== '"') return place;
  }
  return -1;
}

/** The cells as a row of CSV, with its line feed. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map((cell) => (/[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(',')}\n`;
}
