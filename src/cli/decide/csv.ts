/** CSV (RFC 4180) as programs write it: rows to records by the header's names, and cells to rows. */
import type { Parsed } from '../../domain/settings.ts';
import { type Entry, type Fields, type Line, MOST_SIGNS } from './lines.ts';

/** How rows of CSV are written. */
export interface CsvStyle {
  readonly separator: string;
  /** Whether a byte order mark comes first, by which spreadsheets know UTF-8. */
  readonly marked: boolean;
}

/** As RFC 4180 has it. */
export const PLAIN_CSV: CsvStyle = { separator: ',', marked: false };

/** What may separate the cells of a row. */
const SEPARATORS = [',', ';', '\t', '|'];

/** The separator that a header has most of, outside quotes; a comma if it has none. */
function separatorIn(header: string): string {
  const bare = header.replaceAll(/"[^"]*"/g, '');
  const counts = SEPARATORS.map((separator) => bare.split(separator).length);
  return SEPARATORS[counts.indexOf(Math.max(...counts))] as string;
}

/**
 * Reads rows, line by line; the first has the names of the columns. `named`: the separator, where it is not to be found
 * out. `end` gives the records that are complete only once the file has ended.
 */
export function createCsvReader(named?: string) {
  let separator = named;
  let columns: readonly string[] | undefined;
  let broken = false;
  /** The lines of the record that is being read, whose last quote is still open. */
  let lines: Line[] = [];
  let signs = 0;
  let row = new Row();

  const begin = (): void => {
    [lines, signs, row] = [[], 0, new Row()];
  };
  /** The entry of the row that `lines` make up; none for the header and for an empty row. */
  const complete = (): readonly Entry[] => {
    const [{ cells }, first, last] = [row, lines[0] as Line, lines.at(-1) as Line];
    begin();
    if (cells.every((cell) => cell === '') && first === last) return [];
    const place = { line: first.number, end: last.end, whole: last.whole };
    if (columns !== undefined) return [{ ...place, read: fieldsOf(columns, cells) }];
    const trimmed = cells.map((cell) => cell.trim());
    // A spreadsheet writes empty columns that were once used. One without a name, as pandas has it, stays so.
    const areUnnamed = trimmed.filter((name) => name === '').length > 1;
    const names = trimmed.map((name, place) => (name === '' && areUnnamed ? `column ${place + 1}` : name));
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
    const { number: line, end, whole } = first;
    return [{ line, end, whole, read: { problem } }, ...rest.flatMap((each) => push(each))];
  };
  const push = (line: Line): readonly Entry[] => {
    if (broken) return [];
    if (separator === undefined && line.problem === undefined) {
      const [, stated] = /^sep=(.)\r?$/i.exec(line.text) ?? [];
      separator = stated ?? separatorIn(line.text);
      if (stated !== undefined) return [];
    }
    lines.push(line);
    if (line.problem !== undefined) return lines.length === 1 ? fail(line.problem) : fail(UNCLOSED);
    signs += line.text.length + 1;
    const state = row.add(line.text, separator ?? ',');
    if (state === 'complete') return complete();
    if (state === 'behind') return fail('has text after a closing quote');
    return signs > MOST_SIGNS ? fail(UNCLOSED) : [];
  };

  return {
    push,
    end(): readonly Entry[] {
      const entries: Entry[] = [];
      while (lines.length > 0) entries.push(...fail(UNCLOSED));
      return entries;
    },
    get columns() {
      return columns;
    },
    get separator() {
      return separator ?? ',';
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

class Row {
  readonly cells: string[] = [];
  /** What has been read of the current cell, if that is in quotes. */
  #quoted: string | undefined;

  /** Reads a line into the row: `open` if a quote is open at its end, `behind` if text follows a closing quote. */
  add(text: string, sign: string): 'complete' | 'open' | 'behind' {
    for (let place = 0; ; place++) {
      if (this.#quoted === undefined && text[place] === '"') {
        this.#quoted = '';
        place++;
      }
      const end = this.#quoted === undefined ? text.indexOf(sign, place) : closingQuote(text, place);
      const part = text.slice(place, end === -1 ? undefined : end);
      if (this.#quoted === undefined) {
        this.cells.push(end === -1 ? part.replace(/\r$/, '') : part);
        place = end === -1 ? text.length : end;
      } else {
        this.#quoted += part.replaceAll('""', '"');
        if (end === -1) {
          this.#quoted += '\n';
          return 'open';
        }
        this.cells.push(this.#quoted);
        this.#quoted = undefined;
        place = end + 1;
      }
      if (place === text.length || text.slice(place) === '\r') return 'complete';
      if (text[place] !== sign) return 'behind';
    }
  }
}

function closingQuote(text: string, from: number): number {
  for (let place = text.indexOf('"', from); place !== -1; place = text.indexOf('"', place + 2)) {
    if (text[place + 1] !== '"') return place;
  }
  return -1;
}

/** The cells as a row of CSV, with its line feed. */
export function csvLine(cells: readonly string[], { separator }: CsvStyle = PLAIN_CSV): string {
  const quoted = (cell: string): boolean => cell.includes(separator) || /["\r\n]|^\s|\s$/.test(cell);
  return `${cells.map((cell) => (quoted(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(separator)}\n`;
}
