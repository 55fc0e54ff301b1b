/** For each check of health, routes, models, decisions, their requests, bodies and keys: a service that breaks that promise. */
import { confidence, header, json, message, on, output, status, text, type When, wrongRefusals } from './breaking.ts';
import type { Breakage, SeenRequest } from './tape.ts';

/** What breaks a promise, and which other checks cannot but notice it. */
export interface Row {
  readonly check: string;
  readonly breakages: readonly Breakage[];
  readonly also?: readonly string[];
}

const at =
  (path: string, method = 'GET'): When =>
  (request) =>
    request.protocol === 'http1' && request.path === path && request.method === method;
const decision =
  (when: (body: Readonly<Record<string, unknown>>, request: SeenRequest) => boolean = () => true): When =>
  (request) =>
    request.path === '/v1/decisions' &&
    request.method === 'POST' &&
    request.protocol === 'http1' &&
    when(request.json, request);
const and =
  (...all: readonly When[]): When =>
  (...args) =>
    all.every((when) => when(...args));
const succeeds: When = (_request, answer) => answer.status === 200;
const refused = (when: When): readonly Breakage[] => wrongRefusals.map((change) => on(when, change));
const choicesOf = (body: Readonly<Record<string, unknown>>): readonly string[] =>
  Array.isArray(body.choices) ? body.choices : [];
const three = (body: Readonly<Record<string, unknown>>): boolean => choicesOf(body).length === 3;

/** Those that compare a decision of REST with one of another protocol. */
const otherProtocols = ['grpc.decide', 'grpc.catalogs', 'connect.decide-json', 'connect.decide-proto'];
/** Breaks every third answer to the same question. */
const inconstant = (when: When): Breakage => {
  let count = 0;
  return on(when, (answer, request) => (count++ % 3 === 2 ? confidence(answer, request) : answer));
};

const fields = ['model', 'input', 'instruction'] as const;

/** The table. */
export const brokenDecisions: readonly Row[] = [
  {
    check: 'health.live',
    breakages: [
      on(
        at('/health/live'),
        json(() => ({ status: 'up' })),
      ),
    ],
  },
  { check: 'health.ready', breakages: [on(at('/health/ready'), status(503)), on(at('/health/ready'), text('OK'))] },
  {
    check: 'health.keyless',
    breakages: [
      on(
        and(at('/health/live'), ({ headers }) => 'authorization' in headers),
        status(401),
      ),
    ],
  },
  { check: 'routes.unknown', breakages: refused(at('/v1/decisions/')) },
  {
    check: 'routes.methods',
    breakages: [
      on(at('/v1/models', 'PUT'), header('allow', undefined)),
      on(at('/v1/catalogs', 'OPTIONS'), header('allow', 'GET, POST')),
      on(at('/health/live', 'OPTIONS'), status(204)),
    ],
  },
  {
    check: 'routes.head',
    breakages: [on(at('/v1/models', 'HEAD'), text('{}')), on(at('/v1/models', 'HEAD'), status(405))],
  },
  {
    check: 'routes.http2',
    breakages: [on(({ protocol, path }) => protocol === 'http2' && path === '/v1/decisions', confidence)],
  },
  {
    check: 'answers.request-id',
    breakages: [
      on(at('/health/live'), header('x-request-id', undefined)),
      on(at('/v1/nowhere'), header('x-request-id', 'abc')),
    ],
  },
  {
    check: 'answers.request-id-unique',
    breakages: [
      on(({ headers }) => 'x-request-id' in headers, header('x-request-id', 'req_ofthecaller')),
      on(({ headers }) => 'x-request-id' in headers, header('x-request-id', 'req_1')),
    ],
  },
  { check: 'answers.json', breakages: [on(at('/v1/nowhere'), header('content-type', 'text/html'))] },
  {
    check: 'answers.envelope',
    breakages: [
      on(
        at('/v1/nowhere'),
        json(({ error }) => ({ error, status: 404 })),
      ),
      on(
        at('/v1/nowhere'),
        json(({ error }) => ({ error: { ...error, status: 404 } })),
      ),
      on(
        at('/v1/nowhere'),
        json(({ error: { param: _, ...error } }) => ({ error })),
      ),
      on(
        at('/v1/nowhere'),
        json(({ error }) => ({ error: { ...error, type: 'not_found' } })),
      ),
      on(
        at('/v1/nowhere'),
        json(({ error }) => ({ error: { ...error, message: '' } })),
      ),
    ],
  },
  {
    check: 'models.list',
    breakages: [
      on(
        at('/v1/models'),
        json((body) => ({ ...body, object: 'models' })),
      ),
      on(
        at('/v1/models'),
        json((body) => ({ ...body, next: null })),
      ),
    ],
  },
  {
    check: 'models.descriptor',
    breakages: [
      on(
        and(
          ({ path }) => path.startsWith('/v1/models'),
          ({ method }) => method === 'GET',
          succeeds,
        ),
        json((body) => {
          const { data } = body;
          if (data === undefined) return { ...body, owned_by: '' };
          return { ...body, data: data.map((model: object) => ({ ...model, owned_by: '' })) };
        }),
      ),
    ],
  },
  {
    check: 'models.get',
    breakages: [
      on(
        at('/v1/models/second'),
        json((body) => ({ ...body, owned_by: 'another' })),
      ),
      on(at('/v1/models/second'), status(404)),
    ],
  },
  {
    check: 'models.revision',
    breakages: [
      on(
        at('/v1/models/mock@r1'),
        json((body) => ({ ...body, id: 'mock@r1' })),
      ),
      on(at('/v1/models/mock@r1'), status(404)),
    ],
  },
  { check: 'models.unknown', breakages: refused(at('/v1/models/no-such-model')) },
  {
    check: 'decisions.shape',
    breakages: [
      on(
        and(decision(), succeeds),
        json((body) => ({ ...body, took: 1 })),
      ),
      on(
        and(decision(), succeeds),
        output(() => ({ index: 0 })),
      ),
      on(
        and(decision(), succeeds),
        json((body) => ({ ...body, object: 'classification' })),
      ),
    ],
  },
  {
    check: 'decisions.id',
    breakages: [
      on(
        and(decision(), succeeds),
        json((body) => ({ ...body, id: 'dec_1' })),
      ),
    ],
  },
  {
    check: 'decisions.choice',
    breakages: [
      on(
        decision((body) => choicesOf(body).length === 10),
        output(({ choice }) => ({ choice: choice === 'topic 1' ? 'topic 2' : 'topic 1' })),
      ),
      on(
        decision((body) => choicesOf(body).length === 10),
        output(() => ({ choice: 'another' })),
      ),
    ],
  },
  {
    check: 'decisions.confidence',
    breakages: [
      on(
        and((request) => request.path === '/v1/decisions', succeeds),
        confidence,
      ),
    ],
    also: otherProtocols,
  },
  {
    check: 'decisions.probabilities',
    breakages: [
      on(
        and(
          (request) => request.path === '/v1/decisions',
          (request) => choicesOf(request.json).includes('shipping') || 'catalog' in request.json,
          succeeds,
        ),
        output(({ probabilities }) => ({ probabilities: { ...probabilities, another: 0.000001 } })),
      ),
    ],
    also: otherProtocols,
  },
  {
    check: 'decisions.distribution',
    breakages: [0.000001, 0.0000001].map((more) =>
      on(
        decision((body) => choicesOf(body).length === 7),
        output(({ probabilities }) => ({
          probabilities: { ...probabilities, 'topic 1': probabilities['topic 1'] + more },
        })),
      ),
    ),
  },
  {
    check: 'decisions.model',
    breakages: [
      on(
        decision((body) => body.model === 'mock@r1' && 'choices' in body),
        confidence,
      ),
    ],
  },
  {
    check: 'decisions.usage',
    breakages: [
      on(
        decision(({ input }) => String(input).match(/charged/g)?.length === 2),
        json((body) => ({ ...body, usage: { input_tokens: 1 } })),
      ),
    ],
  },
  {
    check: 'decisions.repeatable',
    breakages: [inconstant(decision(({ input }) => input === 'The parcel never came'))],
  },
  {
    check: 'decisions.order',
    breakages: [
      on(
        decision((body) => three(body) && choicesOf(body)[0] !== 'billing'),
        confidence,
      ),
    ],
  },
  {
    check: 'decisions.neighbours',
    breakages: [
      on(
        (request, answer, before) =>
          decision(({ input }) => String(input).startsWith('Is anybody there?'))(request, answer, before) &&
          before.length > 6,
        confidence,
      ),
    ],
  },
  {
    check: 'decisions.byte-for-byte',
    breakages: [
      on(
        decision((body) => choicesOf(body).length === 14),
        output(({ probabilities: { ' billing': _, ...probabilities } }) => ({ probabilities })),
      ),
      on(
        decision((body) => choicesOf(body).length === 14),
        output(({ probabilities }) => ({
          probabilities: Object.fromEntries(
            Object.entries(probabilities).map(([choice, value]) => [choice.normalize('NFC'), value]),
          ),
        })),
      ),
    ],
  },
  {
    check: 'decisions.bounds',
    breakages: [
      on(
        decision((body) => choicesOf(body).length === 250),
        status(400),
      ),
    ],
  },
  {
    check: 'decisions.key',
    breakages: [
      on(
        and(
          decision((body, { headers }) => 'authorization' in headers && 'choices' in body),
          succeeds,
        ),
        confidence,
      ),
    ],
    also: ['catalogs.decide'],
  },

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
