/** For each check of requests for decisions, of bodies and of keys: a service that breaks that promise. */
import { header, message, status, wrongRefusals } from './breaking.ts';
import { at, choicesOf, decision, type Row, three } from './rows.ts';
import type { SeenRequest } from './tape.ts';

const fields = ['model', 'input', 'instruction'] as const;
const withMessage = [...wrongRefusals, message];
const keyOf = ({ headers }: SeenRequest): string => String(headers.authorization);

/** The table. */
export const brokenRequests: readonly Row[] = [
  ...fields.flatMap((name): readonly Row[] => [
    [
      `requests.missing-${name}`,
      decision((body) => !(name in body) && three(body) && fields.every((other) => other === name || other in body)),
      wrongRefusals,
    ],
    [`requests.empty-${name}`, decision((body) => body[name] === '' && three(body)), wrongRefusals],
    [`requests.type-of-${name}`, decision((body) => typeof body[name] === 'boolean' && three(body)), wrongRefusals],
  ]),
  ['requests.type-of-choices', decision((body) => typeof body.choices === 'string'), wrongRefusals],
  ['requests.type-of-catalog', decision((body) => body.catalog === 1 && !('choices' in body)), wrongRefusals],
  ['requests.unknown-property', decision((body) => 'temperature' in body), wrongRefusals],
  [
    'requests.both',
    decision((body) => 'catalog' in body && 'choices' in body && choicesOf(body).length === 0),
    wrongRefusals,
  ],
  ['requests.empty-catalog', decision((body) => body.catalog === ''), wrongRefusals],
  [
    'requests.neither',
    decision((body) => fields.every((name) => typeof body[name] === 'string') && Object.keys(body).length === 3),
    wrongRefusals,
  ],
  ['requests.few-choices', decision((body) => choicesOf(body).length === 1 && body.instruction !== ''), wrongRefusals],
  ['requests.many-choices', decision((body) => choicesOf(body).length === 301), wrongRefusals],
  [
    'requests.repeated-choice',
    decision((body) => choicesOf(body).join() === 'billing,shipping,billing'),
    wrongRefusals,
  ],
  ['requests.empty-choice', decision((body) => choicesOf(body)[1] === ''), wrongRefusals],
  [
    'requests.lone-surrogate-choice',
    decision((body) => choicesOf(body).some((choice) => typeof choice === 'string' && !choice.isWellFormed())),
    wrongRefusals,
  ],
  [
    'requests.lone-surrogate-input',
    decision((body) => typeof body.input === 'string' && !body.input.isWellFormed()),
    wrongRefusals,
  ],
  ['requests.model-limit-of-choices', decision((body) => choicesOf(body).length === 251), wrongRefusals],
  ['requests.long-input', decision((body) => String(body.input).length > 1000), withMessage],
  ['requests.long-input', decision((body) => String(body.instruction).length > 1000), withMessage],
  ['requests.long-choice', decision((body) => String(choicesOf(body)[1]).length > 200), withMessage],
  ['requests.unknown-model', decision((body) => String(body.model).endsWith('@no-such-revision')), wrongRefusals],
  [
    'requests.catalog-without-key',
    decision((body, { headers }) => body.catalog === 'any' && !('authorization' in headers)),
    wrongRefusals,
  ],
  ['requests.unknown-first', decision((body) => 'extra' in body && 'model' in body), wrongRefusals],
  [
    'requests.order-of-faults',
    decision((body) => choicesOf(body).length === 1 && body.instruction === ''),
    wrongRefusals,
  ],
  ['requests.other-dialect', decision((body) => 'questions' in body), withMessage],
  [
    'requests.unavailable-model',
    decision((body) => body.model === 'gone'),
    [...wrongRefusals, header('retry-after', undefined)],
  ],
  ['requests.disabled-model', decision((body) => body.model === 'off'), wrongRefusals],

  ['bodies.json', decision((_, { body }) => body.toString() === '"text"'), wrongRefusals],
  ['bodies.utf8', decision((_, { body }) => body.includes('tw\u00efce', 0, 'latin1')), wrongRefusals],
  ['bodies.byte-order-mark', decision((_, { body }) => body[0] === 0xef), wrongRefusals],
  ['bodies.repeated-property', decision((_, { body }) => body.toString().startsWith('{"\\u006dodel"')), wrongRefusals],
  ['bodies.content-type', decision((_, { headers }) => headers['content-type'] === 'text/plain'), wrongRefusals],
  ['bodies.compressed', decision((_, { headers }) => headers['content-encoding'] === 'br'), wrongRefusals],
  ['bodies.large', decision((_, { body }) => body.length > 1024 * 1024), wrongRefusals],
  ['bodies.large-headers', decision((_, { headers }) => 'x-long' in headers), wrongRefusals],
  ['bodies.charset', decision((_, { headers }) => /profile/.test(String(headers['content-type']))), status(415)],
  [
    'bodies.http2',
    ({ protocol, path, body }) => protocol === 'http2' && path === '/v1/decisions' && body.toString() === '"text"',
    wrongRefusals,
  ],

  ['keys.needed', at('/v1/catalogs/any', 'DELETE', ({ headers }) => !('authorization' in headers)), wrongRefusals],
  ['keys.challenge', at('/v1/catalogs/any'), header('www-authenticate', undefined)],
  [
    'keys.wrong-for-catalogs',
    at('/v1/catalogs/any', 'DELETE', ({ headers }) => 'authorization' in headers),
    wrongRefusals,
  ],
  ['keys.wrong-for-decisions', decision((_, request) => keyOf(request) === 'Basic dTpw'), wrongRefusals],
  ['keys.wrong-for-models', at('/v1/models', 'GET', (request) => keyOf(request) === 'Bearer not-a-key'), wrongRefusals],
  ['keys.before-the-body', at('/v1/catalogs', 'POST', ({ body }) => body.toString() === '{'), wrongRefusals],
  ['keys.good-for-models', at('/v1/models', 'GET', (request) => keyOf(request).startsWith('BEARER ump_')), status(401)],
];
