/**
 * For checks of requests for decisions, of bodies and of keys: a service that breaks that promise. That refusals are
 * made, and of their kind, is proven of all of them together.
 */
import { header, message, status } from './breaking.ts';
import { at, choicesOf, decision, type Row } from './rows.ts';

/** The table. */
export const BROKEN_REQUESTS: readonly Row[] = [
  ['requests.long-input', decision((body) => String(body.input).length > 1000), message],
  ['requests.long-input', decision((body) => String(body.instruction).length > 1000), message],
  ['requests.long-choice', decision((body) => String(choicesOf(body)[1]).length > 200), message],
  ['requests.other-dialect', decision((body) => 'questions' in body), message],
  ['requests.unavailable-model', decision((body) => body.model === 'gone'), header('retry-after', undefined)],
  ['bodies.charset', decision((_, { headers }) => /profile/.test(String(headers['content-type']))), status(415)],
  ['keys.challenge', at('/v1/catalogs/any'), header('www-authenticate', undefined)],
  [
    'keys.good-for-models',
    at('/v1/models', 'GET', ({ headers }) => String(headers.authorization).startsWith('BEARER ump_')),
    status(401),
  ],
];
