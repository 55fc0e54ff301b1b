/**
 * Reads JSON that a server wrote. Functions that read a part of an answer throw CallFailed `malformed` for a value that
 * has another form.
 */
import type { TokensUsed } from '../../../engine.ts';
import { isObject, type JsonObject } from '../../../packages/manifest.ts';
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
    const isStream = /^(data|event|:)/.test(body.toString('latin1', 0, 5));
    throw malformed(isStream ? 'the answer is a stream, though none was asked for' : 'the answer is not JSON');
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

/** A value as an object. */
export function objectOf(value: unknown): JsonObject {
  if (!isObject(value)) throw malformed('the answer is no object');
  return value;
}

/** A value as a list; `name` is for the message. */
export function listIn(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw malformed(`the answer has no list of ${name}`);
  return value;
}

/** A value as a finite number; `name` is for the message. */
export function finiteNumber(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw malformed(`a ${name} is no finite number`);
  return value;
}

/**
 * What `read` makes of each item, in the order of the items' `index`, from 0 to `count` - 1, since servers sort by
 * score. Each index must be there once.
 */
export function inOrder<T>(items: readonly unknown[], count: number, read: (item: JsonObject) => T): readonly T[] {
  if (items.length !== count) throw malformed(`the answer has ${items.length} results, not ${count}`);
  const found = new Map<number, T>();
  for (const item of items.map(objectOf)) {
    const { index } = item;
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= count) {
      throw malformed('a result has no index within the request');
    }
    if (found.has(index)) throw malformed(`the answer has the index ${index} twice`);
    found.set(index, read(item));
  }
  return Array.from({ length: count }, (_, i) => found.get(i) as T);
}

/** What an answer's `usage` says of tokens, in either naming; what it does not say, or not as a whole number, is 0. */
export function usageIn(answer: unknown): TokensUsed {
  const usage = isObject(answer) && isObject(answer.usage) ? answer.usage : {};
  const count = (value: unknown): number => (Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : 0);
  return {
    in: count(usage.prompt_tokens ?? usage.input_tokens),
    out: count(usage.completion_tokens ?? usage.output_tokens),
  };
}
