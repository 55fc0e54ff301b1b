/** Comparisons that throw BrokenPromise, with what was expected and what was received. */
import { isDeepStrictEqual } from 'node:util';
import { type Answer, jsonOf, likelyCause, objectAt, show } from './answer.ts';
import { BrokenPromise } from './outcome.ts';

/** Expects two values to be deeply equal. @throws BrokenPromise */
export function same(what: string, actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) {
    throw new BrokenPromise(`${what}: expected ${show(expected)}, got ${show(actual)}`);
  }
}

/** Expects a text that matches. @throws BrokenPromise */
export function matches(what: string, actual: unknown, pattern: RegExp): void {
  if (typeof actual !== 'string' || !pattern.test(actual)) {
    throw new BrokenPromise(`${what}: expected ${pattern}, got ${show(actual)}`);
  }
}

/** Expects a condition; `otherwise` is the message if it does not hold. @throws BrokenPromise */
export function holds(condition: boolean, otherwise: string): void {
  if (!condition) throw new BrokenPromise(otherwise);
}

/** Expects an answer's status. The message names a proxy that may have answered instead. @throws BrokenPromise */
export function hasStatus(answer: Answer, status: number): void {
  if (answer.status === status) return;
  const body = answer.body.length === 0 ? '' : `: ${show(answer.body.toString())}`;
  throw new BrokenPromise(`expected ${status}, got ${answer.status}${body}${likelyCause(answer)}`);
}

/** An error of the contract, without its message. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  /** `error.param` of the envelope; null unless it is given. */
  readonly param?: string | null;
  /** By default the type that the contract gives this status. */
  readonly type?: string;
}

/** The types of errors by status; every other status has invalid_request_error. */
const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  429: 'rate_limit_error',
  503: 'server_error',
};

/** Expects an answer to be this error, and returns its message. @throws BrokenPromise */
export function refuses(answer: Answer, { status, code, param = null, type }: Refusal): string {
  hasStatus(answer, status);
  const { message, ...error } = objectAt(jsonOf(answer), 'error');
  const wanted = { code, param, type: type ?? TYPES[status] ?? 'invalid_request_error' };
  same('error', { code: error.code, param: error.param, type: error.type }, wanted);
  return String(message);
}
