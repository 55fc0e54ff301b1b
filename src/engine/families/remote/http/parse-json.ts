/** Reads JSON that a server wrote. */
import { malformed } from '../call-failed.ts';

/** The deepest nesting that is read: answers of all dialects nest less. */
const DEEPEST = 32;

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** The value. Throws CallFailed `malformed` for what is not JSON or nests too deeply. */
export function parseJson(body: Buffer): unknown {
  if (isDeep(body)) throw malformed(`the answer nests more than ${DEEPEST} values`);
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    // The parser's own message would quote the answer.
    throw malformed('the answer is not JSON');
  }
}

/** Whether brackets nest too deeply outside of strings. */
function isDeep(body: Buffer): boolean {
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i] as number;
    if (quoted) {
      if (byte === BACKSLASH) i++;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) quoted = true;
    else if (OPENING.has(byte) && ++depth > DEEPEST) return true;
    else if (CLOSING.has(byte)) depth--;
  }
  return false;
}
