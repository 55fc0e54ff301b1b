/** For each check of requests for decisions, of bodies and of keys: a service that breaks that promise. */
import { header, message, status, WRONG_REFUSALS } from './breaking.ts';
import { at, choicesOf, decision, type Row, three } from './rows.ts';
import type { SeenRequest } from './tape.ts';

const FIELDS = ['model', 'input', 'instruction'] as const;
const WITH_MESSAGE = [...WRONG_REFUSALS, message];
const keyOf = ({ headers }: SeenRequest): string => String(headers.authorization);

/** The table. */
export const BROKEN_REQUESTS: readonly Row[] = [
  ...FIELDS.flatMap((name): readonly Row[] => [
    [
      `requests.missing-${name}`,
      decision((body) => !(name in body) && three(body) && FIELDS.every((other) => other === name || other in body)),
      WRONG_REFUSALS,
    ],
    [`requests.empty-${name}`, decision((body) => body[name] === '' && three(body)), WRONG_REFUSALS],
    [`requests.type-of-${name}`, decision((body) => typeof body[name] === 'boolean' && three(body)), WRONG_REFUSALS],
  ]),
  ['requests.type-of-choices', decision((body) => typeof body.choices === 'string'), WRONG_REFUSALS],
  ['requests.type-of-catalog', decision((body) => body.catalog === 1 && !('choices' in body)), WRONG_REFUSALS],
  ['requests.unknown-property', decision((body) => 'temperature' in body), WRONG_REFUSALS],
  [
    'requests.both',
    decision((body) => 'catalog' in body && 'choices' in body && choicesOf(body).length === 0),
    WRONG_REFUSALS,
  ],
  ['requests.empty-catalog', decision((body) => body.catalog === ''), WRONG_REFUSALS],
  [
    'requests.neither',
    decision((body) => FIELDS.every((name) => typeof body[name] === 'string') && Object.keys(body).length === 3),
    WRONG_REFUSALS,
  ],
  ['requests.few-choices', decision((body) => choicesOf(body).length === 1 && body.instruction !== ''), WRONG_REFUSALS],
  ['requests.many-choices', decision((body) => choicesOf(body).length === 301), WRONG_REFUSALS],
  [
    'requests.repeated-choice',
    decision((body) => choicesOf(body).join() === 'billing,shipping,billing'),
    WRONG_REFUSALS,
  ],
  ['requests.empty-choice', decision((body) => choicesOf(body)[1] === ''), WRONG_REFUSALS],
  [
    'requests.lone-surrogate-choice',
    decision((body) => choicesOf(body).some((choice) => typeof choice === 'string' && !choice.isWellFormed())),
    WRONG_REFUSALS,
  ],
  [
    'requests.lone-surrogate-input',
    decision((body) => typeof body.input === 'string' && !body.input.isWellFormed()),
    WRONG_REFUSALS,
  ],
  ['requests.model-limit-of-choices', decision((body) => choicesOf(body).length === 251), WRONG_REFUSALS],
  ['requests.long-input', decision((body) => String(body.input).length > 1000), WITH_MESSAGE],
  ['requests.long-input', decision((body) => String(body.instruction).length > 1000), WITH_MESSAGE],
  ['requests.long-choice', decision((body) => String(choicesOf(body)[1]).length > 200), WITH_MESSAGE],
  ['requests.unknown-model', decision((body) => String(body.model).endsWith('@no-such-revision')), WRONG_REFUSALS],
  [
    'requests.catalog-without-key',
    decision((body, { headers }) => body.catalog === 'any' && !('authorization' in headers)),
    WRONG_REFUSALS,
  ],
  ['requests.unknown-first', decision((body) => 'extra' in body && 'model' in body), WRONG_REFUSALS],
  [
    'requests.order-of-faults',
    decision((body) => choicesOf(body).length === 1 && body.instruction === ''),
    WRONG_REFUSALS,
  ],
  ['requests.other-dialect', decision((body) => 'questions' in body), WITH_MESSAGE],
  [
    'requests.unavailable-model',
    decision((body) => body.model === 'gone'),
    [...WRONG_REFUSALS, header('retry-after', undefined)],
  ],
  ['requests.disabled-model', decision((body) => body.model === 'off'), WRONG_REFUSALS],

  ['bodies.json', decision((_, { body }) => body.toString() === '"text"'), WRONG_REFUSALS],
  ['bodies.utf8', decision((_, { body }) => body.includes('tw\u00efce', 0, 'latin1')), WRONG_REFUSALS],
  ['bodies.byte-order-mark', decision((_, { body }) => body[0] === 0xef), WRONG_REFUSALS],
  ['bodies.repeated-property', decision((_, { body }) => body.toString().startsWith('{"\\u006dodel"')), WRONG_REFUSALS],
  ['bodies.content-type', decision((_, { headers }) => headers['content-type'] === 'text/plain'), WRONG_REFUSALS],
  ['bodies.compressed', decision((_, { headers }) => headers['content-encoding'] === 'br'), WRONG_REFUSALS],
  ['bodies.large', decision((_, { body }) => body.length > 1024 * 1024), WRONG_REFUSALS],
  ['bodies.large-headers', decision((_, { headers }) => 'x-long' in headers), WRONG_REFUSALS],
  ['bodies.charset', decision((_, { headers }) => /profile/.test(String(headers['content-type']))), status(415)],
  [
    'bodies.http2',
    ({ protocol, path, body }) => protocol === 'http2' && path === '/v1/decisions' && body.toString() === '"text"',
    WRONG_REFUSALS,
  ],

  ['keys.needed', at('/v1/catalogs/any', 'DELETE', ({ headers }) => !('authorization' in headers)), WRONG_REFUSALS],
  ['keys.challenge', at('/v1/catalogs/any'), header('www-authenticate', undefined)],
  [
    'keys.wrong-for-catalogs',
    at('/v1/catalogs/any', 'DELETE', ({ headers }) => 'authorization' in headers),
    WRONG_REFUSALS,
  ],
  ['keys.wrong-for-decisions', decision((_, request) => keyOf(request) === 'Basic dTpw'), WRONG_REFUSALS],
  [
    'keys.wrong-for-models',
    at('/v1/models', 'GET', (request) => keyOf(request) === 'Bearer not-a-key'),
    WRONG_REFUSALS,
  ],
  ['keys.before-the-body', at('/v1/catalogs', 'POST', ({ body }) => body.toString() === '{'), WRONG_REFUSALS],
  ['keys.good-for-models', at('/v1/models', 'GET', (request) => keyOf(request).startsWith('BEARER ump_')), status(401)],
];
