/** For each check of requests for decisions, of bodies and of keys: a service that breaks that promise. */
import { header, message, on, status } from './breaking.ts';
import { and, at, choicesOf, decision, type Row, refused, three } from './rows.ts';

const fields = ['model', 'input', 'instruction'] as const;

/** The table. */
export const brokenRequests: readonly Row[] = [
  ...fields.flatMap((name): readonly Row[] => [
    {
      check: `requests.missing-${name}`,
      breakages: refused(
        decision((body) => !(name in body) && three(body) && fields.every((other) => other === name || other in body)),
      ),
    },
    { check: `requests.empty-${name}`, breakages: refused(decision((body) => body[name] === '' && three(body))) },
    {
      check: `requests.type-of-${name}`,
      breakages: refused(decision((body) => typeof body[name] === 'boolean' && three(body))),
    },
  ]),
  { check: 'requests.type-of-choices', breakages: refused(decision((body) => typeof body.choices === 'string')) },
  { check: 'requests.type-of-catalog', breakages: refused(decision((body) => body.catalog === 1)) },
  { check: 'requests.unknown-property', breakages: refused(decision((body) => 'temperature' in body)) },
  {
    check: 'requests.both',
    breakages: refused(decision((body) => 'catalog' in body && 'choices' in body && choicesOf(body).length === 0)),
  },
  {
    check: 'requests.neither',
    breakages: refused(
      decision(
        (body) =>
          fields.every((name) => typeof body[name] === 'string') && !('choices' in body) && !('catalog' in body),
      ),
    ),
  },
  {
    check: 'requests.few-choices',
    breakages: refused(decision((body) => choicesOf(body).length === 1 && body.instruction !== '')),
  },
  { check: 'requests.many-choices', breakages: refused(decision((body) => choicesOf(body).length === 301)) },
  {
    check: 'requests.repeated-choice',
    breakages: refused(decision((body) => choicesOf(body).join() === 'billing,shipping,billing')),
  },
  { check: 'requests.empty-choice', breakages: refused(decision((body) => choicesOf(body)[1] === '')) },
  {
    check: 'requests.lone-surrogate-choice',
    breakages: refused(
      decision((body) => choicesOf(body).some((choice) => typeof choice === 'string' && !choice.isWellFormed())),
    ),
  },
  {
    check: 'requests.lone-surrogate-input',
    breakages: refused(decision((body) => typeof body.input === 'string' && !body.input.isWellFormed())),
  },
  { check: 'requests.model-limit-of-choices', breakages: refused(decision((body) => choicesOf(body).length === 251)) },
  {
    check: 'requests.long-input',
    breakages: [
      ...refused(decision((body) => String(body.input).length > 1000)),
      on(
        decision((body) => String(body.input).length > 1000),
        message,
      ),
    ],
  },
  {
    check: 'requests.long-choice',
    breakages: [
      ...refused(decision((body) => String(choicesOf(body)[1]).length > 200)),
      on(
        decision((body) => String(choicesOf(body)[1]).length > 200),
        message,
      ),
    ],
  },
  {
    check: 'requests.unknown-model',
    breakages: refused(decision((body) => String(body.model).endsWith('@no-such-revision'))),
  },
  {
    check: 'requests.catalog-without-key',
    breakages: refused(decision((body, { headers }) => body.catalog === 'any' && !('authorization' in headers))),
  },
  { check: 'requests.unknown-first', breakages: refused(decision((body) => 'extra' in body && 'model' in body)) },
  {
    check: 'requests.order-of-faults',
    breakages: refused(decision((body) => choicesOf(body).length === 1 && body.instruction === '')),
  },
  {
    check: 'requests.other-dialect',
    breakages: [
      ...refused(decision((body) => 'questions' in body)),
      on(
        decision((body) => 'questions' in body),
        message,
      ),
    ],
  },
  {
    check: 'requests.unavailable-model',
    breakages: [
      ...refused(decision((body) => body.model === 'gone')),
      on(
        decision((body) => body.model === 'gone'),
        header('retry-after', undefined),
      ),
    ],
  },
  { check: 'requests.disabled-model', breakages: refused(decision((body) => body.model === 'off')) },

  { check: 'bodies.json', breakages: refused(decision((_, { body }) => body.toString() === '"text"')) },
  { check: 'bodies.utf8', breakages: refused(decision((_, { body }) => body.includes(0xef) && body[0] === 0x7b)) },
  { check: 'bodies.byte-order-mark', breakages: refused(decision((_, { body }) => body[0] === 0xef)) },
  {
    check: 'bodies.repeated-property',
    breakages: refused(decision((_, { body }) => body.toString().startsWith('{"\\u006dodel"'))),
  },
  {
    check: 'bodies.content-type',
    breakages: refused(decision((_, { headers }) => headers['content-type'] === 'text/plain')),
  },
  { check: 'bodies.compressed', breakages: refused(decision((_, { headers }) => 'content-encoding' in headers)) },
  { check: 'bodies.large', breakages: refused(decision((_, { body }) => body.length > 1024 * 1024)) },
  { check: 'bodies.large-headers', breakages: refused(decision((_, { headers }) => 'x-long' in headers)) },
  {
    check: 'bodies.charset',
    breakages: [
      on(
        decision((_, { headers }) => /Application/.test(String(headers['content-type']))),
        status(415),
      ),
    ],
  },

  {
    check: 'keys.needed',
    breakages: refused(
      (request) =>
        request.method === 'DELETE' && request.path === '/v1/catalogs/any' && !('authorization' in request.headers),
    ),
  },
  { check: 'keys.challenge', breakages: [on(at('/v1/catalogs/any'), header('www-authenticate', undefined))] },
  {
    check: 'keys.wrong-for-catalogs',
    breakages: refused(
      (request) =>
        request.method === 'DELETE' && request.path === '/v1/catalogs/any' && 'authorization' in request.headers,
    ),
  },
  {
    check: 'keys.wrong-for-decisions',
    breakages: refused(decision((_, { headers }) => headers.authorization === 'Basic dTpw')),
  },
  {
    check: 'keys.wrong-for-models',
    breakages: refused(and(at('/v1/models'), ({ headers }) => headers.authorization === 'Bearer not-a-key')),
  },
  {
    check: 'keys.before-the-body',
    breakages: refused(({ path, body }) => path === '/v1/catalogs' && body.toString() === '{'),
  },
  {
    check: 'keys.good-for-models',
    breakages: [
      on(
        and(at('/v1/models'), ({ headers }) => String(headers.authorization).startsWith('Bearer ump_')),
        status(401),
      ),
    ],
  },
];
