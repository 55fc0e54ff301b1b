/**
 * Callers send the same list of choices with request after request, and a list of 300 takes longer to parse than everything else of a body. So
 * the bytes of lists seen lately are kept: a body in which such a list stands again is parsed without it, and gets the list that was parsed then.
 *
 * That changes no result. A list's bytes are one whole JSON value, so wherever they follow `"name":` they mean that value. Only a body
 * without another `"name"` is shortened, and only if parsing the rest succeeds and finds the stand-in under that name; whatever is odd goes
 * the long way.
 */
import { randomUUID } from 'node:crypto';
import { createBoundedMap } from '../../domain/bounded-map.ts';
import { type ParsedObject, parseJsonObject } from './strict-json.ts';

/** Parses a body. @throws DomainError INVALID_JSON. */
export type BodyParser = (body: Buffer) => ParsedObject;

interface KnownList {
  /** From the opening bracket to the closing one. */
  readonly bytes: Buffer;
  readonly list: readonly string[];
}

/** Shorter bodies are parsed as quickly as they are searched. */
const MIN_BODY_BYTES = 1024;
/** Bytes of lists that are kept, and the length from which one is not. With their parsed form they take about five times as much. */
const MAX_BYTES = 2 * 1024 * 1024;
const MAX_LIST_BYTES = 64 * 1024;
/** The bytes that a list is looked up by. */
const MARK_BYTES = 96;

/** Nothing that a caller could have written. */
const STAND_IN = randomUUID();
const STAND_IN_BYTES = Buffer.from(JSON.stringify(STAND_IN));
const [TAB, LINE_FEED, RETURN, SPACE, QUOTE, COLON, OPEN, BACKSLASH, CLOSE] = Buffer.from('\t\n\r ":[\\]');

/** A parser of bodies that may have a list of strings under `name`. */
export function createBodyParser(name: string): BodyParser {
  const key = Buffer.from(JSON.stringify(name));
  const known = createBoundedMap<string, KnownList>({ bound: MAX_BYTES, weigh: ({ bytes }) => bytes.length });

  return (body) => {
    const start = body.length < MIN_BODY_BYTES ? undefined : listStart(body, key);
    if (start === undefined) return parseJsonObject(body);
    const mark = body.toString('latin1', start, start + MARK_BYTES);
    const found = known.get(mark);
    const parsed = found === undefined ? undefined : withKnownList(body, start, found, name, key);
    if (parsed !== undefined) return parsed;
    const whole = parseJsonObject(body);
    const list = listAt(body, start);
    if (list !== undefined) known.set(mark, list);
    return whole;
  };
}

/** Where the list begins that follows the first `key`, if a list follows it. */
function listStart(body: Buffer, key: Buffer): number | undefined {
  let at = body.indexOf(key);
  // After a backslash the quote is part of a text.
  if (at < 1 || body[at - 1] === BACKSLASH) return undefined;
  at = afterSpace(body, at + key.length);
  if (body[at] !== COLON) return undefined;
  at = afterSpace(body, at + 1);
  return body[at] === OPEN ? at : undefined;
}

function afterSpace(body: Buffer, from: number): number {
  let at = from;
  while (body[at] === SPACE || body[at] === LINE_FEED || body[at] === RETURN || body[at] === TAB) at += 1;
  return at;
}

/** The body's object with the known list in its place, or undefined where anything else is found than expected. */
function withKnownList(
  body: Buffer,
  start: number,
  { bytes, list }: KnownList,
  name: string,
  key: Buffer,
): ParsedObject | undefined {
  const end = start + bytes.length;
  if (bytes.compare(body, start, Math.min(end, body.length)) !== 0 || body.indexOf(key, end) !== -1) return undefined;
  let rest: ParsedObject;
  try {
    rest = parseJsonObject(Buffer.concat([body.subarray(0, start), STAND_IN_BYTES, body.subarray(end)]));
  } catch {
    return undefined;
  }
  if (rest.duplicate !== undefined || rest.value[name] !== STAND_IN) return undefined;
  return { value: { ...rest.value, [name]: list }, duplicate: undefined };
}

/** The list of strings whose opening bracket stands at `start`, if it is one and not too long. The body is known to be valid JSON. */
function listAt(body: Buffer, start: number): KnownList | undefined {
  const most = Math.min(body.length, start + MAX_LIST_BYTES);
  let quoted = false;
  for (let at = start; at < most; at += 1) {
    const byte = body[at];
    if (quoted && byte === BACKSLASH) at += 1;
    else if (byte === QUOTE) quoted = !quoted;
    else if (!quoted && byte === CLOSE) {
      const bytes = Buffer.from(body.subarray(start, at + 1));
      const list = stringsOf(bytes.toString());
      return list === undefined ? undefined : { bytes, list };
    }
  }
  return undefined;
}

/** The strings of a JSON list, if nothing else is in it. What was cut off at the first closing bracket need not be JSON. */
function stringsOf(text: string): readonly string[] | undefined {
  try {
    const list = JSON.parse(text) as readonly unknown[];
    return list.every((item) => typeof item === 'string') ? Object.freeze(list) : undefined;
  } catch {
    return undefined;
  }
}
