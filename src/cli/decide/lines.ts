/**
 * Text files as programs write them: with a byte order mark or without, in UTF-8 or, with a mark, UTF-16, and with any
 * of the three ends of lines. Splits a text that arrives in pieces into lines, with a bound on how much of one line is
 * held.
 */
import { createReadStream } from 'node:fs';
import { seemingly } from '../../domain/encodings.ts';
import type { Parsed } from '../../domain/settings.ts';

/** One line without its line feed; a carriage return before that is kept. */
export interface Line {
  /** The number of the line in its file, from 1. */
  readonly number: number;
  readonly text: string;
  /** Why the line cannot be read; `text` is empty then. */
  readonly problem?: string;
  /** Bytes from the beginning of the file to the end of the line, its line feed included. */
  readonly end: number;
  /** False for a last line that no line feed ends. */
  readonly whole: boolean;
  /** Whether a byte order mark stood before it, which is left out. */
  readonly marked?: boolean;
}

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

/** UTF-16 code units of a record of several lines; a longer one is taken for one that is not closed. */
export const MOST_SIGNS = 1024 * 1024;

/** Bytes of a line that is read: more than the 1 MiB of a request's body, even if escapes take six bytes for each. */
const MOST_BYTES = 8 * 1024 * 1024;
/** The byte that ends a line, and the one that may stand before it. */
const [LINE_FEED, CARRIAGE_RETURN] = [0x0a, 0x0d];
/** What some programs write at the beginning of a text. */
const BYTE_ORDER_MARK = '\ufeff';

/** The text of a file, without a byte order mark. Throws Error with the line that is not UTF-8. */
export async function readTextFile(file: string): Promise<string> {
  let text = '';
  for await (const line of linesOf(createReadStream(file))) {
    if (line.problem !== undefined) throw new Error(`${file}, line ${line.number}: ${line.problem}`);
    text += line.whole ? `${line.text}\n` : line.text;
  }
  return text;
}

/** The same text in UTF-8 with line feeds, as far as its first piece tells what it is in. */
async function* asUtf8(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let convert: ((piece: Uint8Array) => Uint8Array) | undefined;
  let first = Buffer.alloc(0);
  for await (const piece of pieces) {
    if (convert === undefined) first = Buffer.concat([first, piece]);
    if (first.length < 2) continue;
    const start = convert === undefined;
    convert ??= converterFor(first);
    yield convert(start ? first : piece);
  }
  if (convert === undefined) yield first;
}

function converterFor(first: Uint8Array): (piece: Uint8Array) => Uint8Array {
  const mark = `${first[0]},${first[1]}`;
  if (mark === '80,75' && first[2] === 3)
    throw new Error('an .xlsx file is a zip archive: save the table as CSV in UTF-8');
  if (mark === '255,254' || mark === '254,255') {
    const decoder = new TextDecoder(mark === '255,254' ? 'utf-16le' : 'utf-16be', { ignoreBOM: true });
    return (piece) => Buffer.from(decoder.decode(piece, { stream: true }));
  }
  // Only the oldest programs end lines with nothing but a carriage return.
  const end = first.findIndex((byte) => byte === CARRIAGE_RETURN || byte === LINE_FEED);
  const isOldest = first[end] === CARRIAGE_RETURN && end < first.length - 1 && first[end + 1] !== LINE_FEED;
  if (!isOldest) return (piece) => piece;
  return (piece) => piece.map((byte) => (byte === CARRIAGE_RETURN ? LINE_FEED : byte));
}

/** The lines of a text. A byte order mark is left out. */
export async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let held: Uint8Array[] = [];
  let size = 0;
  let number = 1;
  let offset = 0;
  const take = (rest: Uint8Array, whole: boolean): Line => {
    const bytes = size + rest.length;
    offset += bytes + (whole ? 1 : 0);
    const place = { number: number++, end: offset, whole };
    const parts = [...held, rest];
    held = [];
    size = 0;
    if (bytes > MOST_BYTES) return { ...place, text: '', problem: `is longer than ${MOST_BYTES} bytes` };
    try {
      const text = decoder.decode(parts.length === 1 ? rest : Buffer.concat(parts));
      const marked = place.number === 1 && text.startsWith(BYTE_ORDER_MARK);
      return marked ? { ...place, text: text.slice(1), marked } : { ...place, text };
    } catch {
      const seems = seemingly(Buffer.concat(parts));
      const how = seems.includes('1252')
        ? 'iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW_FILE converts it'
        : 'save it in UTF-8, a table as CSV';
      return { ...place, text: '', problem: `is not UTF-8${seems}: ${how}` };
    }
  };
  for await (const piece of asUtf8(pieces)) {
    let from = 0;
    for (let at = piece.indexOf(LINE_FEED); at !== -1; at = piece.indexOf(LINE_FEED, from)) {
      yield take(piece.subarray(from, at), true);
      from = at + 1;
    }
    const rest = piece.subarray(from);
    // Of a line that is too long nothing is kept but its length.
    if (size <= MOST_BYTES) held.push(rest);
    else held = [];
    size += rest.length;
  }
  if (size > 0) yield take(new Uint8Array(0), false);
}

/** The lines of a text that is in memory as a whole; `end` is not counted. */
export function* linesOfText(text: string): Generator<Line> {
  const lines = text.replace(/^\ufeff/u, '').split('\n');
  for (const [place, line] of lines.entries()) {
    const whole = place < lines.length - 1;
    if (whole || line !== '') yield { number: place + 1, text: line, end: 0, whole };
  }
}
