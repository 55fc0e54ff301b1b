/**
 * For each check of health, routes, models and decisions, and of their requests, bodies and keys: a service that breaks
 * that promise. That refusals are made, and of their kind, is proven of all of them together.
 */
import { ODD_CHOICES } from '../../conformance/odd-choices.ts';
import { type Change, confidence, header, json, message, output, status, text } from './breaking.ts';
import { answered, at, choicesOf, decided, decision, type Row, three } from './rows.ts';

/** Those that compare a decision of REST with one of another protocol. */
const OTHER_PROTOCOLS = ['grpc.decide', 'grpc.catalogs', 'connect.decide-json', 'connect.decide-proto'];
/** Breaks every third answer to the same question. */
const inconstant = (): Change => {
  let count = 0;
  return (answer, request) => (count++ % 3 === 2 ? confidence(answer, request) : answer);
};
const odd = decision((body) => choicesOf(body).length === ODD_CHOICES.length);
const more = (by: number): Change =>
  output(({ probabilities }) => ({ probabilities: { ...probabilities, 'topic 1': probabilities['topic 1'] + by } }));

const HEALTH_AND_ROUTES: readonly Row[] = [
  ['health.live', at('/health/live'), json(() => ({ status: 'up' }))],
  ['health.ready', at('/health/ready'), [status(503), text('OK')]],
  ['health.keyless', at('/health/live', 'GET', ({ headers }) => 'authorization' in headers), status(401)],
  ['routes.methods', at('/v1/models', 'PUT'), header('allow', undefined)],
  ['routes.methods', at('/v1/catalogs', 'OPTIONS'), header('allow', 'GET, POST')],
  ['routes.methods', at('/health/live', 'OPTIONS'), status(204)],
  ['routes.head', at('/v1/models', 'HEAD'), [text('{}'), status(405)]],
  ['routes.http2', answered(200, ({ protocol, path }) => protocol === 'http2' && path === '/v1/decisions'), confidence],
  ['answers.request-id', at('/health/live'), header('x-request-id', undefined)],
  ['answers.request-id', at('/v1/nowhere'), header('x-request-id', 'abc')],
  [
    'answers.request-id-unique',
    ({ headers }) => 'x-request-id' in headers,
    ['req_ofthecaller', 'req_1'].map((id) => header('x-request-id', id)),
  ],
  ['answers.json', at('/v1/nowhere'), header('content-type', 'text/html')],
  [
    'answers.envelope',
    at('/v1/nowhere'),
    [
      json(({ error }) => ({ error, status: 404 })),
      json(({ error }) => ({ error: { ...error, status: 404 } })),
      json(({ error: { param: _, ...error } }) => ({ error })),
      json(({ error }) => ({ error: { ...error, type: 'not_found' } })),
      json(({ error }) => ({ error: { ...error, message: '' } })),
    ],
  ],
];

const MODELS: readonly Row[] = [
  [
    'models.list',
    at('/v1/models'),
    [json((body) => ({ ...body, object: 'models' })), json((body) => ({ ...body, next: null }))],
  ],
  [
    'models.descriptor',
    answered(200, ({ path, method }) => path.startsWith('/v1/models') && method === 'GET'),
    json((body) => {
      const { data } = body;
      if (data === undefined) return { ...body, owned_by: '' };
      return { ...body, data: data.map((model: object) => ({ ...model, owned_by: '' })) };
    }),
  ],
  [
    'models.ready',
    answered(200, at('/v1/models')),
    json((body) => ({ ...body, data: body.data.map((model: object) => ({ ...model, status: 'unavailable' })) })),
    ['grpc.models'],
  ],
  ['models.get', at('/v1/models/second'), [json((body) => ({ ...body, owned_by: 'another' })), status(404)]],
  ['models.revision', at('/v1/models/mock@r1'), [json((body) => ({ ...body, id: 'mock@r1' })), status(404)]],
];

const DECISIONS: readonly Row[] = [
  [
    'decisions.shape',
    decided(),
    [
      json((body) => ({ ...body, took: 1 })),
      output(() => ({ index: 0 })),
      json((body) => ({ ...body, object: 'classification' })),
    ],
  ],
  ['decisions.id', decided(), json((body) => ({ ...body, id: 'dec_1' }))],
  [
    'decisions.choice',
    decision((body) => choicesOf(body).length === 10),
    [
      output(({ choice }) => ({ choice: choice === 'topic 1' ? 'topic 2' : 'topic 1' })),
      output(() => ({ choice: 'another' })),
    ],
  ],
  ['decisions.confidence', answered(200, ({ path }) => path === '/v1/decisions'), confidence, OTHER_PROTOCOLS],
  [
    'decisions.probabilities',
    answered(
      200,
      ({ path, json: body }) => path === '/v1/decisions' && (choicesOf(body).includes('shipping') || 'catalog' in body),
    ),
    output(({ probabilities }) => ({ probabilities: { ...probabilities, another: 0.000001 } })),
    OTHER_PROTOCOLS,
  ],
  ['decisions.distribution', decision((body) => choicesOf(body).length === 7), [more(0.000001), more(0.0000001)]],
  ['decisions.model', decision((body) => body.model === 'mock@r1' && 'choices' in body), confidence],
  [
    'decisions.usage',
    decision(({ input }) => String(input).match(/charged/g)?.length === 2),
    json((body) => ({ ...body, usage: { input_tokens: 1 } })),
  ],
  ['decisions.repeatable', decision(({ input }) => input === 'The parcel never came'), inconstant()],
  ['decisions.order', decision((body) => three(body) && choicesOf(body)[0] !== 'billing'), confidence],
  [
    'decisions.neighbours',
    ({ path, json: body }, _, before) =>
      path === '/v1/decisions' && String(body.input).startsWith('Is anybody there?') && before.length > 6,
    confidence,
  ],
  [
    'decisions.byte-for-byte',
    odd,
    [
      output(({ probabilities: { ' billing': _, ...probabilities } }) => ({ probabilities })),
      output(({ probabilities }) => ({
        probabilities: Object.fromEntries(
          Object.entries(probabilities).map(([choice, value]) => [choice.normalize('NFC'), value]),
        ),
      })),
    ],
    OTHER_PROTOCOLS.filter((id) => id !== 'grpc.catalogs'),
  ],
  ['decisions.bounds', decision((body) => choicesOf(body).length === 250), status(400)],
  [
    'decisions.key',
    decided((body, { headers }) => 'authorization' in headers && 'choices' in body),
    confidence,
    ['catalogs.decide'],
  ],
];

const REQUESTS: readonly Row[] = [
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

/** The table. */
export const BROKEN_DECISIONS: readonly Row[] = [...HEALTH_AND_ROUTES, ...MODELS, ...DECISIONS, ...REQUESTS];
