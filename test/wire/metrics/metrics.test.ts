/**
 * A loaded service's metrics, scraped and compared with what was sent, the probes beside them, and what they say while
 * something is the matter: a queue, a limit, a store that is away, an engine that died.
 */

import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { pid } from 'node:process';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import test from 'ava';
import { DecisionService } from '../../../gen/umpire/v1/decision_service_pb.ts';
import { modelsFolder } from '../../engine/support/packages.ts';
import { json } from '../../support/answers.ts';
import { decide, send } from '../../support/http.ts';
import { startRedis, until } from '../../support/redis.ts';
import { metricsPortOf, scrape } from '../../support/scrape.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { scriptedService, startService, type TestService } from '../../support/service.ts';

const BODY = {
  model: 'minilm-l6',
  input: 'I was charged twice for my order',
  instruction: 'Which team should handle this?',
  choices: ['charges', 'parcels', 'logins'],
};

test('counts what was sent, by route, protocol, status, reason and model', async (t) => {
  const service = await startService({ UMPIRE_METRICS_PORT: '0' });
  t.teardown(() => service.stop());
  for (let count = 0; count < 5; count += 1) await decide(service.port, BODY);
  for (let count = 0; count < 2; count += 1) await decide(service.port, { ...BODY, model: 'nobody' });
  await decide(service.port, BODY, { authorization: 'Bearer junk' });
  await (await fetch(`${service.url}/nowhere/at/all`)).text();
  const client = createClient(DecisionService, createGrpcTransport({ baseUrl: service.url }));
  for (let count = 0; count < 3; count += 1) await client.createDecision(BODY);
  await t.throwsAsync(async () => client.createDecision({ ...BODY, model: 'nobody' }));

  const port = metricsPortOf(service);
  // A request is counted when its connection says that the response is out, which the caller may know first.
  const read = async () => (await scrape(port)).get('umpire_input_tokens_total{model="minilm-l6@r1"}');
  await until(async () => (await read()) === 8 * 13);
  let samples = await scrape(port);
  const rpc = '/umpire.v1.DecisionService/CreateDecision';
  const expected: readonly (readonly [string, number])[] = [
    ['umpire_requests_total{route="/v1/decisions",protocol="rest",status="200"}', 5],
    ['umpire_requests_total{route="/v1/decisions",protocol="rest",status="400"}', 2],
    ['umpire_requests_total{route="/v1/decisions",protocol="rest",status="401"}', 1],
    ['umpire_requests_total{route="unmatched",protocol="rest",status="404"}', 1],
    [`umpire_requests_total{route="${rpc}",protocol="grpc",status="200"}`, 3],
    [`umpire_requests_total{route="${rpc}",protocol="grpc",status="400"}`, 1],
    ['umpire_errors_total{reason="unknown_model"}', 3],
    ['umpire_errors_total{reason="authentication_required"}', 1],
    ['umpire_input_tokens_total{model="minilm-l6@r1"}', 8 * 13],
    ['umpire_choices_total{model="minilm-l6@r1"}', 8 * 3],
    ['umpire_confidence_count{model="minilm-l6@r1"}', 8],
    ['umpire_stage_seconds_count{stage="infer"}', 8],
    ['umpire_stage_seconds_count{stage="queue"}', 8],
    ['umpire_stage_seconds_count{stage="decode"}', 11],
    ['umpire_choices_encoded_total', 3],
    ['umpire_choices_cached_total', 7 * 3],
    ['umpire_engine_replacements_total', 0],
    ['umpire_engine_restarts_total', 0],
    ['umpire_errors_total{reason="internal"}', 0],
    ['umpire_engines', 1],
    ['umpire_ready', 1],
    ['umpire_memory_limit_bytes', 1024 * 1024 * 1024],
    ['umpire_store_up', 1],
    ['umpire_model_ready{model="minilm-l6@r1"}', 1],
  ];
  for (const [sample, value] of expected) t.is(samples.get(sample), value, sample);
  t.true((samples.get('umpire_engine_busy_seconds_total') ?? 0) > 0);
  t.true((samples.get('umpire_connections') ?? 0) > 0);

  service.app.health.startDraining();
  t.is((await fetch(`${service.url}/health/ready`)).status, 503);
  samples = await scrape(port);
  t.is(samples.get('umpire_ready'), 0);
  t.is(samples.get('umpire_errors_total{reason="draining"}'), 0);
});

test('no label holds a path, a key, an input or a choice, however odd the requests are', async (t) => {
  const service = await startService({ UMPIRE_METRICS_PORT: '0' });
  t.teardown(() => service.stop());
  const headers = { authorization: 'Bearer secret-key', 'x-request-id': 'secret-id' };
  const paths = ['/v1/models/secret-model', '/v1/catalogs/secret-catalog', '/secret/path', '/secret.Service/Method'];
  for (const path of paths) await send(service.port, { path, headers });
  await decide(service.port, { ...BODY, input: 'secret input', choices: ['secret one', 'secret two'] });
  const samples = await scrape(metricsPortOf(service));
  for (const sample of samples.keys()) t.false(sample.includes('secret'), sample);
});

test('the port has metrics and nothing else, and the public port has none', async (t) => {
  const service = await startService({ UMPIRE_METRICS_PORT: '0' });
  t.teardown(() => service.stop());
  const url = `http://127.0.0.1:${metricsPortOf(service)}`;
  // A landing page leads there.
  t.regex(await (await fetch(`${url}/`)).text(), /href="\/metrics"/);
  t.regex(
    await (await fetch(`${url}/metrics`)).text(),
    /^umpire_build_info\{version="\d+\.\d+\.\d+",node="\d+\.\d+\.\d+"\} 1$/m,
  );
  t.is((await fetch(`${url}/v1/models`)).status, 404);
  t.is((await fetch(`${url}/metrics`, { method: 'POST' })).status, 405);
  t.is((await fetch(`${service.url}/metrics`)).status, 404);
});

// The small vocabulary has letters alone, so a word of three is spelt.
const QUESTION = { model: 'tiny', instruction: 'which', choices: ['ab', 'x y'] };

test('the log line has the share of unread tokens, and a metric counts what was made less sure', async (t) => {
  const modelsDir = await modelsFolder(t, { manifest: { unread: { bound: 0.5, pull: 3 } } });
  const service = await startService({ UMPIRE_METRICS_PORT: '0', UMPIRE_MODELS_DIR: modelsDir });
  t.teardown(() => service.stop());
  for (const input of ['a b c', 'abc', 'abc d e f g']) {
    t.is((await decide(service.port, { ...QUESTION, input })).status, 200);
  }
  const told = () => service.log.filter(({ msg, model }) => msg === 'request' && model === 'tiny@r1');
  await until(() => told().length >= 3);
  const unreadShares = told().map(({ unreadShare }) => unreadShare);
  t.deepEqual(unreadShares, [0, 1, 0.43]);
  t.is((await scrape(metricsPortOf(service))).get('umpire_unread_decisions_total{model="tiny@r1"}'), 1);
});

test('they say what the other port says', async (t) => {
  const engine = createScriptedEngine();
  const service = await startService({ UMPIRE_METRICS_PORT: '0', UMPIRE_DRAIN_DELAY: '1' }, { engine });
  const port = metricsPortOf(service);
  t.like(await send(port, { path: '/health/live' }), { status: 200, text: '{"status":"live"}' });
  t.like(await send(port, { path: '/health/ready' }), { status: 200, text: '{"status":"ready"}' });
  t.like(await send(port, { path: '/health/ready', method: 'HEAD' }), { status: 200, text: '' });
  t.is((await send(port, { path: '/health/ready', method: 'POST' })).status, 404);
  t.is((await send(port, { path: '/health' })).status, 404);
  engine.isReady = false;
  const unready = await send(port, { path: '/health/ready' });
  t.is(unready.status, 503);
  t.is(unready.headers['retry-after'], '1');
  t.like(json(unready), { error: { code: 'not_ready', type: 'server_error', param: null } });
  t.is((await send(port, { path: '/health/live' })).status, 200);
  engine.isReady = true;
  const stopped = service.stop();
  t.like(json(await send(port, { path: '/health/ready' })), { error: { code: 'draining' } });
  await stopped;
});

test('connections that fill either port do not keep them out', async (t) => {
  const service = await scriptedService(t, { UMPIRE_METRICS_PORT: '0', UMPIRE_MAX_CONNECTIONS: '20' });
  const port = metricsPortOf(service);
  const open = (to: number, text: string): Socket => {
    const socket = connect(to, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(text);
    return socket;
  };
  const flood = [
    ...Array.from({ length: 100 }, () => open(service.port, 'GET /health/live HTTP/1.1\r\n')),
    ...Array.from({ length: 100 }, () => open(port, '')),
    ...Array.from({ length: 100 }, () => open(port, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n')),
  ];
  for (let count = 0; count < 10; count += 1) {
    t.is((await send(port, { path: '/health/live' })).status, 200);
    t.is((await send(port, { path: '/health/ready' })).status, 200);
  }
  for (const socket of flood) socket.destroy();
});

/** Milliseconds that a busy machine may take. */
const PATIENCE = 60_000;

/** Waits until a sample is as wanted; the scrape in which it was. */
async function scraped(
  service: TestService,
  name: string,
  wanted: (value: number) => boolean,
): Promise<ReadonlyMap<string, number>> {
  let samples: ReadonlyMap<string, number> = new Map();
  await until(async () => {
    samples = await scrape(metricsPortOf(service));
    return wanted(samples.get(name) ?? Number.NaN);
  }, PATIENCE);
  return samples;
}

const LONG = { ...BODY, input: `${BODY.input}. `.repeat(6) };

// Alone: it looks for the one engine of this process.
test.serial('the queue and the engine under load, and an engine that is killed', async (t) => {
  const service = await startService({ UMPIRE_METRICS_PORT: '0' });
  t.teardown(() => service.stop());
  const SENT = 60;
  const answers = Promise.all(Array.from({ length: SENT }, () => decide(service.port, LONG)));
  const during = await scraped(service, 'umpire_queue_jobs', (jobs) => jobs > 0);
  t.true((during.get('umpire_queue_jobs') as number) <= SENT);
  t.true((during.get('umpire_queue_seconds') as number) > 0);
  // A machine that is busy with other work may not do all of them in time.
  const decided = (await answers).filter(({ status }) => status === 200).length;
  t.true(decided > 0);

  const after = await scraped(
    service,
    'umpire_request_seconds_count{route="/v1/decisions",protocol="rest"}',
    (count) => count === SENT,
  );
  const of = (name: string): number => after.get(name) ?? Number.NaN;
  t.is(of('umpire_queue_jobs'), 0);
  t.is(of('umpire_queue_seconds'), 0);
  for (const [stage, count] of Object.entries({
    admission: SENT,
    decode: SENT,
    queue: decided,
    tokenize: decided,
    infer: decided,
  })) {
    t.is(of(`umpire_stage_seconds_count{stage="${stage}"}`), count, stage);
    t.is(of(`umpire_stage_seconds_bucket{le="+Inf",stage="${stage}"}`), count, stage);
    t.true(of(`umpire_stage_seconds_sum{stage="${stage}"}`) > 0, stage);
  }
  const total = of('umpire_request_seconds_sum{route="/v1/decisions",protocol="rest"}');
  t.true(total > of('umpire_stage_seconds_sum{stage="queue"}'), 'a request takes longer than its wait');
  const stages = of('umpire_stage_seconds_sum{stage="tokenize"}') + of('umpire_stage_seconds_sum{stage="infer"}');
  t.true(of('umpire_engine_busy_seconds_total') > stages - 1e-6, 'engines were busy with these');
  t.true(of('process_resident_memory_bytes') > 30e6);
  t.true(of('nodejs_eventloop_lag_p99_seconds') >= 0);
  // An engine tells its memory from time to time.
  await scraped(service, 'umpire_engine_memory_bytes', (bytes) => bytes > 30e6);

  const [engine] = childrenOf(pid).filter((child) => commandOf(child).includes('worker/main'));
  t.not(engine, undefined);
  process.kill(engine as number, 'SIGKILL');
  await scraped(service, 'umpire_engine_restarts_total', (restarts) => restarts === 1);
});

test('limits that were hit', async (t) => {
  const service = await scriptedService(t, { UMPIRE_METRICS_PORT: '0', UMPIRE_RATE_ANONYMOUS: '1/h, burst 2' });
  const statuses: number[] = [];
  for (let count = 0; count < 5; count += 1) statuses.push((await decide(service.port, BODY)).status);
  t.deepEqual(statuses, [200, 200, 429, 429, 429]);
  const samples = await scraped(
    service,
    'umpire_requests_total{route="/v1/decisions",protocol="rest",status="429"}',
    (count) => count === 3,
  );
  t.is(samples.get('umpire_errors_total{reason="rate_limit_exceeded"}'), 3);
  t.is(samples.get('umpire_errors_total{reason="quota_exceeded"}'), 0);
});

test('Redis: up, away and back', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const service = await scriptedService(t, {
    UMPIRE_METRICS_PORT: '0',
    REDIS_URL: redis.url,
    UMPIRE_RATE_ANONYMOUS: '1000/s',
  });
  const up = await scraped(service, 'umpire_store_latency_seconds', (latency) => latency > 0);
  t.is(up.get('umpire_store_up'), 1);
  t.is(up.get('umpire_store_reconnects_total'), 0);
  t.is((await decide(service.port, BODY)).status, 200);
  await scraped(service, 'umpire_stage_seconds_count{stage="store"}', (count) => count === 1);
  await redis.kill();
  await scraped(service, 'umpire_store_up', (is) => is === 0);
  await redis.start();
  const back = await scraped(service, 'umpire_store_up', (is) => is === 1);
  t.true((back.get('umpire_store_reconnects_total') as number) >= 1);
});

function childrenOf(parent: number): readonly number[] {
  return readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}

function commandOf(process: number): string {
  return readFileSync(`/proc/${process}/cmdline`, 'utf8');
}
