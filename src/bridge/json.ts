/**
 * Reads a body as JSON, strictly: UTF-8 without a byte order mark, no name twice in an object, no half of a surrogate
 * pair (texts with different halves would be one text in UTF-8), and not too deep or too many values.
 */
import { Refused } from '../front/refused.ts';

/** Objects and arrays within one another. */
const MOST_DEPTH = 40;
/** Values in a body: what the largest questions have, twice. */
const MOST_VALUES = 100_000;

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];
/** What `[` and `{` have in common, and `]` and `}`. */
const [OPENS, CLOSES] = [0x5b, 0x5d];

/** The value. Throws Refused: `INVALID_JSON`, `DUPLICATE_FIELD` or `INVALID_VALUE`. */
export function readJson(bytes: Uint8Array): unknown {
  let names = namesIn(bytes);
  let isWhole = true;
  let value: unknown;
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text, function (this: unknown, name: string, each: unknown) {
      if (!Array.isArray(this)) names -= 1;
      isWhole &&= name.isWellFormed() && (typeof each !== 'string' || each.isWellFormed());
      return each;
    });
  } catch {
    throw new Refused('INVALID_JSON', 'the body is not JSON in UTF-8');
  }
  if (!isWhole) throw new Refused('INVALID_VALUE', 'a text in the body has half of a surrogate pair');
  // What the text names and no value has was named twice. The body itself was counted as a value of an object.
  if (names !== -1) throw new Refused('DUPLICATE_FIELD', 'an object in the body has a name twice');
  return value;
}

/** How many names objects have in the text. Throws Refused where there is too much of it. */
function namesIn(bytes: Uint8Array): number {
  let [names, values, depth] = [0, 0, 0];
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (byte === QUOTE) {
      for (i += 1; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i += 1;
    } else if (byte === COLON) names += 1;
    else if (byte === COMMA) values += 1;
    else if ((byte & ~0x20) === OPENS) [values, depth] = [values + 1, depth + 1];
    else if ((byte & ~0x20) === CLOSES) depth -= 1;
    if (depth > MOST_DEPTH || values > MOST_VALUES)
      throw new Refused('INVALID_JSON', 'the body is too deep, or has too many values');
  }
  return names;
}
