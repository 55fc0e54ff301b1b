/**
 * What the mock is asked to do wrong, in one line, in the header `Umpire-Mock` (gRPC: metadata) or in `--fault`:
 *
 *     spec = part { ";" part } ;
 *     part = STATUS | CODE                  such as 429 or overloaded: that error; 429, 500 and 503 are
 *                                           rate_limit_exceeded, internal and overloaded
 *          | "retry-after=" SECONDS | "retry-after=none"
 *          | "delay=" MILLISECONDS          before anything else
 *          | "cut=answer" | "cut=body"      closes the connection instead of the answer, or in the middle of its body
 *          | "first=" N ";" "id=" NAME      only the first N requests of that name, so that a retry gets through
 */
import { ERROR_TABLE, type ErrorReason } from '../domain/errors.ts';
import type { Parsed } from '../domain/settings.ts';

/** What is done wrong to one request. */
export interface FaultSpec {
  readonly error: ErrorReason | undefined;
  /** Seconds; null for none; undefined for what the service would say. */
  readonly retryAfter: number | null | undefined;
  /** Milliseconds. */
  readonly delay: number;
  readonly cut: 'answer' | 'body' | undefined;
  readonly first: { readonly count: number; readonly id: string } | undefined;
}

const BY_STATUS: Readonly<Record<string, ErrorReason>> = {
  429: 'RATE_LIMIT_EXCEEDED',
  500: 'INTERNAL',
  503: 'OVERLOADED',
};
/** Milliseconds: twice as long as any call may take. */
const MAX_DELAY = 60_000;

/** Reads the text of a spec. */
export function parseFault(text: string): Parsed<FaultSpec> {
  let error: ErrorReason | undefined;
  const values: Record<string, string> = {};
  for (const part of text.split(';').map((piece) => piece.trim())) {
    const [, name = '', value = ''] = /^([a-z-]+)\s*=\s*(\S+)$/.exec(part) ?? [];
    if (name !== '') {
      if (!['retry-after', 'delay', 'cut', 'first', 'id'].includes(name)) return { problem: `there is no '${name}='` };
      values[name] = value;
      continue;
    }
    const reason = BY_STATUS[part] ?? part.toUpperCase();
    // CANCELED is never sent: its caller is gone.
    if (!isReason(reason) || reason === 'CANCELED' || part !== part.toLowerCase()) {
      return { problem: `'${part}' is neither 429, 500, 503, the code of an error, nor NAME=VALUE` };
    }
    error = reason;
  }
  const { 'retry-after': retry, delay = '0', cut, first, id } = values;
  if (retry !== undefined && retry !== 'none' && !/^[1-9]\d{0,4}$/.test(retry))
    return { problem: 'retry-after: seconds or none' };
  if (!/^\d{1,5}$/.test(delay) || Number(delay) > MAX_DELAY)
    return { problem: `delay: milliseconds, at most ${MAX_DELAY}` };
  if (cut !== undefined && cut !== 'answer' && cut !== 'body') return { problem: 'cut: answer or body' };
  if ((first === undefined) !== (id === undefined)) return { problem: 'first=N and id=NAME belong together' };
  if (first !== undefined && !/^[1-9]\d{0,3}$/.test(first)) return { problem: 'first: a number from 1' };
  if (id !== undefined && id.length > 64) return { problem: 'id: at most 64 characters' };
  const value: FaultSpec = {
    error,
    retryAfter: retry === undefined ? undefined : retry === 'none' ? null : Number(retry),
    delay: Number(delay),
    cut,
    first: first === undefined || id === undefined ? undefined : { count: Number(first), id },
  };
  return { value };
}

function isReason(text: string): text is ErrorReason {
  return Object.hasOwn(ERROR_TABLE, text);
}
