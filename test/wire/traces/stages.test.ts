/** The stages of a request: what they are by its times, and where its calls to the store lie in a trace. */
import { randomBytes } from 'node:crypto';
import test from 'ava';
import type { CallFacts, CallTimes } from '../../../src/domain/call.ts';
import type { Exchange } from '../../../src/wire/http/exchange.ts';
import { type Stage, stagesOf } from '../../../src/wire/traces/describe.ts';
import { type Call, send } from '../../support/http.ts';
import { issueKey } from '../../support/keys.ts';
import { openStores } from '../../support/open-stores.ts';
import { startRedis, until } from '../../support/redis.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import {
  BODY,
  nesting,
  PARENT,
  PATIENCE,
  type ReceivedSpan,
  serverOf,
  startTraced,
  type Traced,
} from '../../support/traced-service.ts';

/** As far as stages look at it. */
const exchange = (
  times: CallTimes,
  calls: readonly { start: number; end: number }[] = [],
  facts: CallFacts = {},
): Exchange =>
  ({ startedAt: 100, facts, times, storeBudget: { remaining: 0, calls }, record: { endedAt: 200 } }) as Exchange;

const flat = (stages: readonly Stage[], above = ''): readonly string[] =>
  stages.flatMap(({ name, start, end, inner }) => [
    `${above}${name} ${start}–${end}`,
    ...flat(inner, `${above}${name}/`),
  ]);

test('a request that was not admitted has no stages but its store calls', (t) => {
  t.deepEqual(flat(stagesOf(exchange({}))), []);
  t.deepEqual(flat(stagesOf(exchange({}, [{ start: 110, end: 120 }]))), ['store 110–120']);
});

test('one that failed in decoding spent the rest of its time there', (t) => {
  t.deepEqual(flat(stagesOf(exchange({ admittedAt: 110 }))), ['admission 100–110', 'decode 110–200']);
});

test("messages to the engine and back take what the engine's stages leave, half each", (t) => {
  const decided = exchange(
    { admittedAt: 110, invokedAt: 120, engineSince: 130, engineUntil: 190 },
    [
      { start: 101, end: 105 },
      { start: 121, end: 129 },
    ],
    { timings: { queue: 10, tokenize: 4, infer: 40 } },
  );
  t.deepEqual(flat(stagesOf(decided)), [
    'admission 100–110',
    'admission/store 101–105',
    'decode 110–120',
    'store 121–129',
    'engine 130–190',
    'engine/queue 130–140',
    'engine/tokenize 143–147',
    'engine/infer 147–187',
  ]);
});

test('nothing lies outside its parent, whatever the clocks said', (t) => {
  const odd = exchange(
    // The caller left before the engine was done.
    { admittedAt: 110, invokedAt: 120, engineSince: 130, engineUntil: 300 },
    [{ start: 190, end: 230 }],
    { timings: { queue: 50, tokenize: 50, infer: 50 } },
  );
  t.deepEqual(flat(stagesOf(odd)), [
    'admission 100–110',
    'decode 110–120',
    'store 190–200',
    'engine 130–200',
    'engine/queue 130–180',
    'engine/tokenize 180–200',
    'engine/infer 200–200',
  ]);
  const running = exchange({ admittedAt: 110, invokedAt: 120, engineSince: 130 });
  t.deepEqual(flat(stagesOf(running)).at(-1), 'engine 130–200');
});

/**
 * Sends a request in a trace of its own until the store has answered in time, as on a busy machine it may not, and the
 * key is no news any more. The answer with its spans.
 */
async function traced(
  service: Traced,
  call: Call,
): Promise<{ readonly status: number; readonly spans: readonly ReceivedSpan[] }> {
  for (let tries = 0; ; tries += 1) {
    const trace = randomBytes(16).toString('hex');
    const { status } = await send(service.port, {
      ...call,
      headers: { ...call.headers, traceparent: `00-${trace}-${PARENT}-01` },
    });
    if (status === 503 && tries < 50) continue;
    const own = (): readonly ReceivedSpan[] => service.receiver.spans.filter(({ traceId }) => traceId === trace);
    await until(() => own().some(({ kind }) => kind === 'SPAN_KIND_SERVER'), PATIENCE);
    return { status, spans: own() };
  }
}

test('calls to the store lie in the stage that made them, and say nothing of the owner or the catalog', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const stores = await openStores({ REDIS_URL: redis.url });
  const { headers } = await issueKey(stores, 'secret-owner');
  await stores.close();
  const service = await startTraced(
    t,
    { REDIS_URL: redis.url, UMPIRE_RATE_KEY: '1000/s' },
    { engine: createScriptedEngine() },
  );
  const created = await traced(service, {
    path: '/v1/catalogs',
    headers,
    body: JSON.stringify({ id: 'secret-catalog', model: 'minilm-l6', choices: BODY.choices }),
  });
  t.is(created.status, 201);
  t.is(serverOf(created.spans).attributes['umpire.caller'], 'key');
  t.deepEqual(nesting(t, created.spans), [
    'POST /v1/catalogs > admission',
    // The key, and its limits.
    'admission > store',
    'admission > store',
    'POST /v1/catalogs > decode',
    // Whether the catalog exists, and its creation.
    'POST /v1/catalogs > store',
    'POST /v1/catalogs > store',
  ]);

  const { choices: _, ...inline } = BODY;
  const decided = await traced(service, { headers, body: JSON.stringify({ ...inline, catalog: 'secret-catalog' }) });
  t.is(decided.status, 200);
  t.deepEqual(nesting(t, decided.spans), [
    'POST /v1/decisions > admission',
    // The limits; the key is known by now.
    'admission > store',
    'POST /v1/decisions > decode',
    'POST /v1/decisions > store',
    'POST /v1/decisions > engine',
    'engine > queue',
    'engine > tokenize',
    'engine > infer',
  ]);
  for (const { name, attributes } of service.receiver.spans) {
    t.notRegex(JSON.stringify({ name, attributes }), /secret|ump_live/);
  }
});
