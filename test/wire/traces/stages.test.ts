/**
 * The stages of a request: what they are by its times, and where its calls to the store lie in a trace. And which
 * settings of traces are read.
 */
import { randomBytes } from 'node:crypto';
import test from 'ava';
import type { CallFacts, CallTimes } from '../../../src/domain/call.ts';
import type { Exchange } from '../../../src/wire/http/exchange.ts';
import { type Stage, stagesOf } from '../../../src/wire/traces/describe.ts';
import { parseTraceSettings } from '../../../src/wire/traces/settings.ts';
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

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

const OFF: readonly Record<string, string>[] = [
  {},
  { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' },
  { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
  { OTEL_TRACES_SAMPLER: 'nonsense' },
  { ...ENDPOINT, OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
  { ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' },
  { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' },
];

for (const env of OFF) {
  test(`traces are off and nothing is judged: ${JSON.stringify(env)}`, (t) => {
    t.deepEqual(parseTraceSettings(env), { value: undefined, problems: [] });
  });
}

test('an endpoint alone is a whole configuration', (t) => {
  t.deepEqual(parseTraceSettings(ENDPOINT), {
    value: { sampler: 'parentbased_always_on', ratio: 1, timeout: 10_000, delay: 5000, queueSize: 2048 },
    problems: [],
  });
});

test('settings of traces go before the general ones', (t) => {
  const { value, problems } = parseTraceSettings({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'not looked at',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c:1/here?key=1',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'br',
    OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
    OTEL_EXPORTER_OTLP_TIMEOUT: '1',
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '2000',
    OTEL_EXPORTER_OTLP_HEADERS: ' authorization = Basic%20dTpw , x-scope=b%3Dc,',
  });
  t.deepEqual(problems, []);
  t.is(value?.timeout, 2000);
});

test('samplers and their share', (t) => {
  for (const sampler of ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]))
    t.is(parseTraceSettings({ ...ENDPOINT, OTEL_TRACES_SAMPLER: sampler }).value?.sampler, sampler as never);
  for (const argument of ['0', '1', '0.01', '.5', '1e-3', '1.0']) {
    const env = { ...ENDPOINT, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: argument };
    t.like(parseTraceSettings(env), { value: { ratio: Number(argument) }, problems: [] });
  }
});

const WRONG: readonly (readonly [env: Record<string, string>, problem: RegExp])[] = [
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /^OTEL_EXPORTER_OTLP_ENDPOINT: must be a URL/],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'grpc://collector:4317' }, /^OTEL_EXPORTER_OTLP_ENDPOINT:/],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'junk' }, /^OTEL_EXPORTER_OTLP_TRACES_ENDPOINT:/],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://c/otlp/?key=secret' }, /^OTEL_EXPORTER_OTLP_ENDPOINT: .*without a query$/],
  [{ OTEL_EXPORTER_OTLP_COMPRESSION: 'br' }, /^OTEL_EXPORTER_OTLP_COMPRESSION: must be none or gzip/],
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /^OTEL_EXPORTER_OTLP_PROTOCOL: .*http\/protobuf alone, not 'grpc'/],
  [{ OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' }, /^OTEL_EXPORTER_OTLP_TRACES_PROTOCOL:/],
  [{ OTEL_TRACES_EXPORTER: 'zipkin' }, /^OTEL_TRACES_EXPORTER:/],
  [{ OTEL_EXPORTER_OTLP_TIMEOUT: '0' }, /^OTEL_EXPORTER_OTLP_TIMEOUT:/],
  [{ OTEL_EXPORTER_OTLP_TIMEOUT: '10s' }, /^OTEL_EXPORTER_OTLP_TIMEOUT:/],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'secret' }, /^OTEL_EXPORTER_OTLP_HEADERS: must be 'name=value/],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'a b=secret' }, /^OTEL_EXPORTER_OTLP_HEADERS:/],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=secret%0d%0ab:c' }, /^OTEL_EXPORTER_OTLP_HEADERS:/],
  [{ OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'a=%ffsecret' }, /^OTEL_EXPORTER_OTLP_TRACES_HEADERS:/],
  [{ OTEL_RESOURCE_ATTRIBUTES: '=secret' }, /^OTEL_RESOURCE_ATTRIBUTES:/],
  [{ OTEL_TRACES_SAMPLER: 'jaeger_remote' }, /^OTEL_TRACES_SAMPLER: must be one of/],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '1.5' }, /^OTEL_TRACES_SAMPLER_ARG:/],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '-1' }, /^OTEL_TRACES_SAMPLER_ARG:/],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: 'half' }, /^OTEL_TRACES_SAMPLER_ARG:/],
  [{ OTEL_BSP_SCHEDULE_DELAY: '-5' }, /^OTEL_BSP_SCHEDULE_DELAY:/],
  [{ OTEL_BSP_MAX_QUEUE_SIZE: '0' }, /^OTEL_BSP_MAX_QUEUE_SIZE:/],
];

for (const [env, problem] of WRONG) {
  test(`${JSON.stringify(env)} is named as wrong`, (t) => {
    const { problems } = parseTraceSettings({ ...ENDPOINT, ...env });
    t.is(problems.length, 1);
    t.regex(problems[0] ?? '', problem);
    t.notRegex(problems[0] ?? '', /secret/);
  });
}
