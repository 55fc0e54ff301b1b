/** For each check of health, routes, models and decisions: a service that breaks that promise. */
import { confidence, header, json, on, output, status, text, type When } from './breaking.ts';
import { and, at, choicesOf, decision, type Row, refused, succeeds, three } from './rows.ts';
import type { Breakage } from './tape.ts';

/** Those that compare a decision of REST with one of another protocol. */
const otherProtocols = ['grpc.decide', 'grpc.catalogs', 'connect.decide-json', 'connect.decide-proto'];
/** Breaks every third answer to the same question. */
const inconstant = (when: When): Breakage => {
  let count = 0;
  return on(when, (answer, request) => (count++ % 3 === 2 ? confidence(answer, request) : answer));
};

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
    check: 'models.ready',
    breakages: [
      on(
        and(at('/v1/models'), succeeds),
        json((body) => ({ ...body, data: body.data.map((model: object) => ({ ...model, status: 'unavailable' })) })),
      ),
    ],
    also: ['grpc.models'],
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
];
