/** Comparisons that throw BrokenPromise with what was expected and what came. */
import { isDeepStrictEqual } from 'node:util';
import { type Answer, jsonOf, likelyCause, objectAt, show } from './answer.ts';
import { BrokenPromise } from './outcome.ts';

/** Expects two values to be deeply equal. @throws BrokenPromise */
export function same(what: string, actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) {
    throw new BrokenPromise(`${what}: expected ${show(expected)}, got ${show(actual)}`);
  }
}

/** A text that matches. */
export function matches(what: string, actual: unknown, pattern: RegExp): void {
  if (typeof actual !== 'string' || !pattern.test(actual)) {
    throw new BrokenPromise(`${what}: expected ${pattern}, got ${show(actual)}`);
  }
}

/** Anything else that must hold. */
export function holds(condition: boolean, otherwise: string): void {
  if (!condition) throw new BrokenPromise(otherwise);
}

/** The status of an answer, with a word about proxies if it is not that. */
export function hasStatus(answer: Answer, status: number): void {
  if (answer.status === status) return;
  const body = answer.body.length === 0 ? '' : `: ${show(answer.body.toString())}`;
  throw new BrokenPromise(`expected ${status}, got ${answer.status}${body}${likelyCause(answer)}`);
}

/** An error of the contract, its message aside. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  /** `error.param` of the envelope; null unless it is given. */
  readonly param?: string | null;
  /** Default: what the contract gives the status. */
  readonly type?: string;
}

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  429: 'rate_limit_error',
  503: 'server_error',
};

/** The answer is that error; returns its message. */
export function refuses(answer: Answer, { status, code, param = null, type }: Refusal): string {
  hasStatus(answer, status);
  const { message, ...error } = objectAt(jsonOf(answer), 'error');
  const wanted = { code, param, type: type ?? TYPES[status] ?? 'invalid_request_error' };
  same('error', { code: error.code, param: error.param, type: error.type }, wanted);
  return String(message);
}
