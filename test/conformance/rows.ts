/** What the tables of broken services are made of, and how they name requests. */
import type { Change, When } from './breaking.ts';
import type { SeenRequest } from './tape.ts';

/**
 * What breaks a promise: the check that notices it, the answers that are wrong, what is wrong with them, one service
 * for each change, and which other checks cannot but notice it. A check may have several rows.
 */
export type Row = readonly [
  check: string,
  when: When,
  changes: Change | readonly Change[],
  also?: readonly string[] | undefined,
];

type Body = Readonly<Record<string, unknown>>;
type Ask<T extends readonly unknown[]> = (...args: T) => boolean;
const any = (): boolean => true;

/** A request to a path over HTTP/1.1. */
export const at =
  (path: string, method = 'GET', when: Ask<[SeenRequest]> = any): When =>
  (request) =>
    request.protocol === 'http1' && request.path === path && request.method === method && when(request);
/** A request for a decision over HTTP/1.1. */
export const decision =
  (when: Ask<[Body, SeenRequest]> = any): When =>
  (request) =>
    at('/v1/decisions', 'POST')(request, undefined as never, []) && when(request.json, request);
/** A request for a decision over HTTP/1.1 whose answer is a decision. */
export const decided =
  (when: Ask<[Body, SeenRequest]> = any): When =>
  (request, answer) =>
    answer.status === 200 && decision(when)(request, answer, []);
/** A request whose answer has the status. */
export const answered =
  (status: number, when: When): When =>
  (request, answer, before) =>
    answer.status === status && when(request, answer, before);
/** The choices in a body; none if they are no list. */
export const choicesOf = (body: Body): readonly string[] => (Array.isArray(body.choices) ? body.choices : []);
/** Whether there are as many choices as in the kit's question. */
export const three = (body: Body): boolean => choicesOf(body).length === 3;
