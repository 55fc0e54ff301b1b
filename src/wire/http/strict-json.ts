/**
 * JSON as a request body may be: one object, UTF-8 without a byte order mark, with known properties that hold
 * strings and lists of strings. What JSON leaves open is refused here, so that two readers of the same bytes never
 * see different requests.
 *
 * A body is scanned once before anything is made of it, and no further than to the first thing that no request can
 * have: a property that the contract does not have or that is given twice, an object or a list where the contract has
 * none. So the time that a body takes depends on its bytes alone, not on how deep it nests, how many properties it has
 * or how long its numbers are. Values are read when they are asked for.
 */
import { isAscii } from 'node:buffer';
import { seemingly } from '../../domain/encodings.ts';
import { DomainError } from '../../domain/errors.ts';
import { JsonCursor, NotJson, type StringSpan, stringOf } from './json-cursor.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The properties that an object may have, by name: whether each is a list of strings, or else a string. */
export type ObjectShape = ReadonlyMap<string, 'string' | 'strings'>;

/** The value of a property: its kind, and how it is read once it is wanted. */
export type BodyValue =
  | { readonly kind: 'string'; read(): string }
  | { readonly kind: 'strings'; readonly items: number; read(): readonly string[] }
  /** Anything else that does not nest: `null`, a number. */
  | { readonly kind: 'other' };

/** What a body was found to be. */
export type ScannedBody =
  | {
      readonly kind: 'object';
      readonly values: ReadonlyMap<string, BodyValue>;
    }
  /** It has a property that no request has; `name` is the beginning of a long name. */
  | { readonly kind: 'unknown'; readonly name: string }
  /** It has a property twice. */
  | { readonly kind: 'duplicate'; readonly name: string }
  /**
   * A property holds an object, a list where it must hold a string, or a list with something other than a string in
   * this place, `isObject` if that is an object.
   */
  | {
      readonly kind: 'nested';
      readonly name: string;
      readonly place: number | undefined;
      readonly isObject: boolean;
    };

/** Characters of a property's name that are kept: one more than an error shows, to see that it is longer. */
const SHOWN_NAME = 129;

const [QUOTE, COLON, COMMA, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST] = [0x22, 0x3a, 0x2c, 0x7b, 0x7d, 0x5b, 0x5d];

const OTHER: BodyValue = { kind: 'other' };

const fault = (message: string): DomainError => new DomainError('INVALID_JSON', message);

/** Scans a body of this shape. @throws DomainError INVALID_JSON. */
export function scanBody(body: Uint8Array, shape: ObjectShape): ScannedBody {
  const cursor = new JsonCursor(decoded(body));
  try {
    const first = cursor.skipSpace();
    if (cursor.ended) throw fault('the body is empty; send a JSON object');
    if (first !== OPEN) {
      if (first !== OPEN_LIST && first !== QUOTE) cursor.takeScalar();
      throw fault(
        TWICE_ENCODED.test(cursor.text)
          ? 'the body is a JSON string that holds an object: it was encoded twice; send the object itself'
          : 'the body must be a JSON object',
      );
    }
    return scanObject(cursor, shape);
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    // The message does not repeat what stands there: it is the caller's text.
    throw fault(`the body is not valid JSON${placeOf(error, cursor.text)}`);
  }
}

/** What an object is without its quotes, or with single ones. */
const UNQUOTED = /^\s*'?\{\s*'?[A-Za-z]/;

/** A string in which an object begins. */
const TWICE_ENCODED = /^\s*"(?:\s|\\[nrt])*\{/;

/** Where a text is not JSON: by line and column if it has lines. */
function placeOf({ position }: NotJson, text: string): string {
  if (position === undefined) return ': it ends too early';
  let line = 1;
  let start = 0;
  for (let end = text.indexOf('\n'); end !== -1 && end < position; end = text.indexOf('\n', start)) {
    line += 1;
    start = end + 1;
  }
  const place = text.includes('\n') ? `line ${line}, column ${position - start + 1}` : `at position ${position}`;
  if (UNQUOTED.test(text)) return ` (${place}): names and texts need double quotes, which a shell may have taken away`;
  // Elsewhere they would have been skipped.
  const isRaw = /[\n\r\t]/.test(text[position] as string);
  return ` (${place})${isRaw ? ': a line break or a tab in a string must be escaped, as in \\n' : ''}`;
}

function decoded(body: Uint8Array): string {
  let text: string;
  try {
    // ASCII needs no decoding, and finding that out takes less time than decoding does.
    text = isAscii(body)
      ? Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1')
      : decoder.decode(body);
  } catch {
    throw fault(`the body is not valid UTF-8${seemingly(body)}`);
  }
  if (text.charCodeAt(0) === 0xfeff) throw fault('the body begins with a byte order mark; send UTF-8 without one');
  // UTF-16 without a mark: each letter has a zero beside it.
  if (body[0] === 0 || body[1] === 0) throw fault(`the body is not JSON in UTF-8${seemingly(body)}`);
  return text;
}

function scanObject(cursor: JsonCursor, shape: ObjectShape): ScannedBody {
  const values = new Map<string, BodyValue>();
  cursor.take(OPEN);
  if (cursor.skipSpace() === CLOSE) cursor.at += 1;
  else {
    for (;;) {
      cursor.skipSpace();
      const name = nameOf(cursor.text, cursor.takeString());
      const expected = shape.get(name);
      if (expected === undefined) return { kind: 'unknown', name };
      if (values.has(name)) return { kind: 'duplicate', name };
      cursor.skipSpace();
      cursor.take(COLON);
      cursor.skipSpace();
      const value = scanValue(cursor, expected);
      if (value === undefined || value.kind === 'wrong') {
        return { kind: 'nested', name, place: value?.place, isObject: value?.isObject ?? false };
      }
      values.set(name, value);
      if (cursor.skipSpace() === CLOSE) break;
      cursor.take(COMMA);
    }
    cursor.at += 1;
  }
  cursor.skipSpace();
  if (!cursor.ended) cursor.fail();
  return { kind: 'object', values };
}

/** A property's name; of a very long one, the beginning. */
function nameOf(text: string, span: StringSpan): string {
  const { start, end, escaped } = span;
  return escaped
    ? stringOf(text, span).slice(0, SHOWN_NAME)
    : text.slice(start + 1, Math.min(end - 1, start + 1 + SHOWN_NAME));
}

/** A list that has something other than a string in this place. */
interface WrongList {
  readonly kind: 'wrong';
  readonly place: number;
  readonly isObject: boolean;
}

/** The value here, or undefined if it nests deeper than that of any request. */
function scanValue(cursor: JsonCursor, expected: 'string' | 'strings'): BodyValue | WrongList | undefined {
  const { text, unit } = cursor;
  if (unit === QUOTE) {
    const span = cursor.takeString();
    return expected === 'string' ? { kind: 'string', read: () => stringOf(text, span) } : OTHER;
  }
  if (unit === OPEN) return undefined;
  if (unit === OPEN_LIST) return expected === 'strings' ? scanList(cursor) : undefined;
  cursor.takeScalar();
  return OTHER;
}

function scanList(cursor: JsonCursor): BodyValue | WrongList {
  const { text, at: start } = cursor;
  let items = 0;
  cursor.take(OPEN_LIST);
  if (cursor.skipSpace() === CLOSE_LIST) cursor.at += 1;
  else {
    for (;;) {
      if (cursor.skipSpace() !== QUOTE) {
        const isObject = cursor.unit === OPEN;
        if (!isObject && cursor.unit !== OPEN_LIST) cursor.takeScalar();
        return { kind: 'wrong', place: items, isObject };
      }
      cursor.takeString();
      items += 1;
      if (cursor.skipSpace() === CLOSE_LIST) break;
      cursor.take(COMMA);
    }
    cursor.at += 1;
  }
  const { at: end } = cursor;
  return { kind: 'strings', items, read: () => JSON.parse(text.slice(start, end)) as string[] };
}
