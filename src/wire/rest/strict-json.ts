/**
 * JSON as a request body may be: one object, UTF-8 without a byte order mark, no property twice. What JSON leaves open is refused here, so that
 * two readers of the same bytes never see different requests.
 */
import { isAscii } from 'node:buffer';
import { DomainError } from '../../domain/errors.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A body that was read: its properties, all of them its own. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** A body's object, and its first property that stands there twice. */
export interface ParsedObject {
  readonly value: JsonObject;
  readonly duplicate: string | undefined;
}

const fault = (message: string): DomainError => new DomainError('INVALID_JSON', message);

/**
 * Parses a body. `duplicate` names the first property of the object that stands there twice, for the caller to report in its own order of
 * faults: `value` then holds the last one. Duplicates deeper inside are not looked for, since no field of the contract holds an object.
 *
 * @throws DomainError INVALID_JSON.
 */
export function parseJsonObject(body: Buffer): ParsedObject {
  let text: string;
  try {
    // ASCII needs no decoding, and finding that out takes less than decoding does.
    text = isAscii(body) ? body.toString('latin1') : decoder.decode(body);
  } catch {
    throw fault('the body is not valid UTF-8');
  }
  if (text.charCodeAt(0) === 0xfeff) throw fault('the body begins with a byte order mark');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw fault(
      text.trim() === '' ? 'the body is empty; send a JSON object' : `the body is not valid JSON${position(error)}`,
    );
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw fault('the body must be a JSON object');
  return { value: value as JsonObject, duplicate: mayRepeat(text, value) ? duplicateKey(text) : undefined };
}

/** Where the parser stopped. Its own message is not passed on: it quotes the body. */
function position(error: unknown): string {
  const at = error instanceof Error ? /at position \d+/.exec(error.message)?.[0] : undefined;
  return at === undefined ? '' : ` (${at})`;
}

/**
 * Every property has a colon, so an object whose text has no more colons than properties repeats none: nearly all bodies end here. A key with a
 * backslash does not count: V8 14.6 can read one where the text has an escape (https://github.com/nodejs/node/issues/63785), and then finds two
 * properties in a text that has one twice.
 */
function mayRepeat(text: string, value: object): boolean {
  let left = 0;
  for (const key of Object.keys(value)) {
    if (key.includes('\\')) return true;
    left += 1;
  }
  for (let at = text.indexOf(':'); at !== -1; at = text.indexOf(':', at + 1)) {
    left -= 1;
    if (left < 0) return true;
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = new Set([0x7b, 0x5b]);
const CLOSE = new Set([0x7d, 0x5d]);
const COLON = 0x3a;

/** The first key of the outermost object that occurs twice, escapes resolved. `text` is known to be valid JSON with an object at its root. */
function duplicateKey(text: string): string | undefined {
  const seen = new Set<string>();
  let depth = 0;
  let lastString: string | undefined;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) {
      const end = closingQuote(text, index + 1);
      lastString = depth === 1 ? text.slice(index, end + 1) : undefined;
      index = end;
    } else if (OPEN.has(code)) {
      depth += 1;
    } else if (CLOSE.has(code)) {
      depth -= 1;
    } else if (code === COLON && depth === 1 && lastString !== undefined) {
      const key = lastString.includes('\\') ? (JSON.parse(lastString) as string) : lastString.slice(1, -1);
      if (seen.has(key)) return key;
      seen.add(key);
      lastString = undefined;
    }
  }
  return undefined;
}

/** The index of the quote that ends the string whose first character is at `from`. */
function closingQuote(text: string, from: number): number {
  let end = text.indexOf('"', from);
  while (text.charCodeAt(end - 1) === BACKSLASH && isEscaped(text, end, from)) end = text.indexOf('"', end + 1);
  return end;
}

function isEscaped(text: string, quote: number, from: number): boolean {
  let first = quote;
  while (first > from && text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (quote - first) % 2 === 1;
}
