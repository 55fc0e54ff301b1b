/** What the tables of broken services are made of, and how they name requests. */
import { on, type When, wrongRefusals } from './breaking.ts';
import type { Breakage, SeenRequest } from './tape.ts';

/** What breaks a promise, and which other checks cannot but notice it. */
export interface Row {
  readonly check: string;
  readonly breakages: readonly Breakage[];
  readonly also?: readonly string[];
}

/** A request to a path over HTTP/1.1. */
export const at =
  (path: string, method = 'GET'): When =>
  (request) =>
    request.protocol === 'http1' && request.path === path && request.method === method;
/** A request for a decision over HTTP/1.1. */
export const decision =
  (when: (body: Readonly<Record<string, unknown>>, request: SeenRequest) => boolean = () => true): When =>
  (request) =>
    request.path === '/v1/decisions' &&
    request.method === 'POST' &&
    request.protocol === 'http1' &&
    when(request.json, request);
/** All of them. */
export const and =
  (...all: readonly When[]): When =>
  (...args) =>
    all.every((when) => when(...args));
/** The answer is a success. */
export const succeeds: When = (_request, answer) => answer.status === 200;
/** Refusals that are not what they should be. */
export const refused = (when: When): readonly Breakage[] => wrongRefusals.map((change) => on(when, change));
/** The choices in a body; none if they are no list. */
export const choicesOf = (body: Readonly<Record<string, unknown>>): readonly string[] =>
  Array.isArray(body.choices) ? body.choices : [];
/** Whether there are as many choices as in the kit's question. */
export const three = (body: Readonly<Record<string, unknown>>): boolean => choicesOf(body).length === 3;
