/**
 * Whose trace a request belongs to, whether it is recorded and where it is sent; and a receiver that is away, slow or
 * failing: requests do not notice, and the log says it once.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { callGrpc, openGrpc } from '../../support/grpc.ts';
import { decide, send } from '../../support/http.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  BODY,
  PARENT,
  spansOf,
  startTraced,
  startTraceReceiver,
  TRACE,
  traceparent,
} from '../../support/traced-service.ts';

const MALFORMED: readonly string[] = [
  '',
  'junk',
  TRACE,
  `00-${TRACE}-${PARENT}`,
  `00-${TRACE}-${PARENT}-01-more`,
  `00-${TRACE}-${PARENT}-0`,
  `ff-${TRACE}-${PARENT}-01`,
  `00-${'0'.repeat(32)}-${PARENT}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE.toUpperCase()}-${PARENT}-01`,
  `00-${TRACE.slice(1)}-${PARENT}-01`,
  `${traceparent}, ${traceparent}`,
];

test.serial('a malformed traceparent begins a trace of its own, whatever tracestate says', async (t) => {
  const service = await startTraced(t, {}, { engine: createScriptedEngine() });
  for (const header of MALFORMED) {
    t.is((await decide(service.port, BODY, { traceparent: header, tracestate: 'vendor=1' })).status, 200, header);
  }
  const spans = await spansOf(t, service, MALFORMED.length);
  const servers = spans.filter(({ kind }) => kind === 'SPAN_KIND_SERVER');
  for (const { traceId, parentSpanId, traceState } of servers) {
    t.not(traceId, TRACE);
    t.is(parentSpanId, '');
    t.is(traceState, '');
  }
  t.is(new Set(servers.map(({ traceId }) => traceId)).size, MALFORMED.length);
});

test.serial('a traceparent of a later version counts, and an odd tracestate harms nobody', async (t) => {
  const service = await startTraced(t, {}, { engine: createScriptedEngine() });
  const odd = ['=', ',,,', 'a=b,a=b', 'ä=ö', 'x'.repeat(5000), `${'k=v,'.repeat(40)}z=1`, '__proto__=1'];
  for (const tracestate of odd) {
    const headers = { traceparent: `01-${TRACE}-${PARENT}-03-what.the.future.will-be`, tracestate };
    t.is((await decide(service.port, BODY, headers)).status, 200, tracestate);
  }
  const spans = await spansOf(t, service, odd.length);
  for (const span of spans.filter(({ kind }) => kind === 'SPAN_KIND_SERVER')) {
    t.like(span, { traceId: TRACE, parentSpanId: PARENT });
    t.true(span.traceState.length <= 512);
  }
});

const SAMPLERS: readonly (readonly [
  name: string,
  argument: string,
  fromRoot: boolean,
  fromOff: boolean,
  fromOn: boolean,
])[] = [
  ['parentbased_always_on', '', true, false, true],
  ['parentbased_traceidratio', '0', false, false, true],
  ['always_off', '', false, false, false],
  ['traceidratio', '1', true, true, true],
];

for (const [name, argument, fromRoot, fromOff, fromOn] of SAMPLERS) {
  test.serial(`${name} ${argument}: the caller's flag is honoured where the sampler asks for it`, async (t) => {
    const service = await startTraced(
      t,
      { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: argument },
      { engine: createScriptedEngine() },
    );
    await decide(service.port, BODY);
    await decide(service.port, BODY, { traceparent: `00-${TRACE}-${PARENT}-00` });
    await decide(service.port, BODY, { traceparent: `00-${'c'.repeat(32)}-${PARENT}-01` });
    await service.stop();
    const traces = new Set(service.receiver.spans.map(({ traceId }) => traceId));
    t.is(traces.has(TRACE), fromOff);
    t.is(traces.has('c'.repeat(32)), fromOn);
    t.is(traces.size, Number(fromRoot) + Number(fromOff) + Number(fromOn));
    const lines = service.log.filter(({ msg }) => msg === 'request');
    t.is('trace_id' in (lines[0] as object), fromRoot);
    t.is(lines[1]?.trace_id, TRACE);
    t.is(lines[1]?.span_id === PARENT, !fromOff);
    t.is(lines[2]?.span_id === PARENT, !fromOn);
  });
}

test.serial('probes are not recorded', async (t) => {
  const service = await startTraced(t, {}, { engine: createScriptedEngine() });
  const clients = openGrpc(service.port);
  t.teardown(clients.close);
  await send(service.port, { path: '/health/live', headers: { traceparent } });
  await send(service.port, { path: '/health/ready' });
  await callGrpc(clients.health, 'Check', { service: '' });
  clients.close();
  await service.stop();
  t.deepEqual(service.receiver.requests, []);
});

test.serial('without an endpoint, or switched off, nothing is sent; a traceparent is still logged', async (t) => {
  const receiver = await startTraceReceiver();
  t.teardown(receiver.close);
  for (const env of [
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_SDK_DISABLED: 'true' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_TRACES_EXPORTER: 'none' },
  ]) {
    const service = await startService(env, { engine: createScriptedEngine() });
    await decide(service.port, BODY, { traceparent });
    await decide(service.port, BODY, { traceparent: 'junk' });
    await service.stop();
    const [first, second] = service.log.filter(({ msg }) => msg === 'request');
    t.like(first, { trace_id: TRACE, span_id: PARENT });
    t.false('trace_id' in (second as object));
  }
  t.deepEqual(receiver.requests, []);
});

test.serial('headers and the whole URL go with every export', async (t) => {
  const receiver = await startTraceReceiver();
  t.teardown(receiver.close);
  const service = await startService(
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1/never',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/my/traces`,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20token,x-tenant=a',
    },
    { engine: createScriptedEngine() },
  );
  await decide(service.port, BODY);
  await service.stop();
  t.is(receiver.requests.length, 1);
  t.is(receiver.requests[0]?.url, '/my/traces');
  t.like(receiver.requests[0]?.headers, { authorization: 'Bearer token', 'x-tenant': 'a' });
  t.notRegex(JSON.stringify(service.log), /token"|Bearer/);
});

const PROGRAM = fileURLToPath(new URL('../../support/loaded-modules.ts', import.meta.url));

async function loaded(env: Record<string, string>): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM], {
    env: { PATH: process.env.PATH, UMPIRE_DATA_DIR: temporaryFolder(), UMPIRE_METRICS_PORT: '0', ...env },
  });
  return JSON.parse(stdout);
}

const EXPORTING = ['@opentelemetry/sdk-trace', '@opentelemetry/exporter-trace-otlp-proto', '@opentelemetry/resources'];

test('without an endpoint nothing of it is loaded, with one all of it', async (t) => {
  const without = await loaded({});
  const found = EXPORTING.filter((name) => without.includes(name));
  t.deepEqual(found, []);
  const withOne = await loaded({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
  t.deepEqual(
    EXPORTING.filter((name) => !withOne.includes(name)),
    [],
  );
});

const SETTINGS = { OTEL_BSP_SCHEDULE_DELAY: '10', OTEL_EXPORTER_OTLP_TIMEOUT: '300', UMPIRE_DRAIN_GRACE: '3' };
const REQUESTS = 60;

type Receiver = Awaited<ReturnType<typeof startTraceReceiver>>;

const TROUBLES: readonly (readonly [name: string, trouble: (receiver: Receiver) => Promise<void> | void])[] = [
  ['is away', (receiver) => receiver.close()],
  [
    'never answers',
    (receiver) => {
      receiver.answer = () => {};
    },
  ],
  [
    'answers 500',
    (receiver) => {
      receiver.answer = (response) => response.writeHead(500).end('secret words of the receiver');
    },
  ],
  [
    'answers junk',
    (receiver) => {
      receiver.answer = (response) => response.writeHead(200).end('\xff\xff not a protobuf');
    },
  ],
];

for (const [name, trouble] of TROUBLES) {
  test(`a receiver that ${name}: every request is answered, and stopping waits no longer than the grace`, async (t) => {
    const receiver = await startTraceReceiver();
    const service = await startService(
      { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...SETTINGS },
      { engine: createScriptedEngine() },
    );
    await trouble(receiver);
    for (let round = 0; round < 3; round += 1) {
      const answers = await Promise.all(Array.from({ length: REQUESTS / 3 }, () => decide(service.port, BODY)));
      for (const { status } of answers) t.is(status, 200);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    const asked = performance.now();
    await service.stop();
    // The grace, and what a busy machine adds.
    t.true(performance.now() - asked < 20_000);
    const lines = service.log.filter(({ msg }) => msg === 'traces cannot be exported');
    // Junk with a 200 is no failure; on a busy machine the time may run out all the same.
    if (name === 'answers junk') t.true(lines.length <= 1);
    else t.is(lines.length, 1);
    t.notRegex(JSON.stringify(lines), /secret/);
    t.is(service.log.filter(({ msg, status }) => msg === 'request' && status === 200).length, REQUESTS);
    await receiver.close();
  });
}

test('the queue is bounded: what does not fit is dropped', async (t) => {
  const receiver = await startTraceReceiver();
  t.teardown(receiver.close);
  const service = await startService(
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_TIMEOUT: '5000',
      OTEL_BSP_SCHEDULE_DELAY: '60000',
      OTEL_BSP_MAX_QUEUE_SIZE: '8',
    },
    { engine: createScriptedEngine() },
  );
  // The first eight spans fill a batch, which is held; the next eight the queue.
  const held: (() => void)[] = [];
  const { answer } = receiver;
  receiver.answer = (response) => {
    held.push(() => answer(response));
  };
  for (let count = 0; count < 20; count += 1) t.is((await decide(service.port, BODY)).status, 200);
  t.is(receiver.requests.length, 1);
  receiver.answer = answer;
  for (const release of held) release();
  await service.stop();
  t.true(receiver.spans.length <= 16, `${receiver.spans.length} spans`);
});
