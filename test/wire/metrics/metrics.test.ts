/** A loaded service's metrics, scraped and compared with what was sent, and the probes beside them. */

import { connect, type Socket } from 'node:net';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import test from 'ava';
import { DecisionService } from '../../../gen/umpire/v1/decision_service_pb.ts';
import { modelsFolder } from '../../engine/support/packages.ts';
import { json } from '../../support/answers.ts';
import { decide, send } from '../../support/http.ts';
import { metricsPortOf, scrape } from '../../support/scrape.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { scriptedService, startService } from '../../support/service.ts';

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
  let samples = await scrape(port);
  for (
    let tries = 0;
    tries < 50 && samples.get('umpire_input_tokens_total{model="minilm-l6@r1"}') !== 8 * 13;
    tries += 1
  ) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    samples = await scrape(port);
  }
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
  for (const path of [
    '/v1/models/secret-model',
    '/v1/catalogs/secret-catalog',
    '/secret/path',
    '/secret.Service/Method',
  ]) {
    await (
      await fetch(`${service.url}${path}`, {
        headers: { authorization: 'Bearer secret-key', 'x-request-id': 'secret-id' },
      })
    ).text();
  }
  await decide(service.port, { ...BODY, input: 'secret input', choices: ['secret one', 'secret two'] });
  const samples = await scrape(metricsPortOf(service));
  t.deepEqual(
    [...samples.keys()].filter((sample) => sample.includes('secret')),
    [],
  );
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
  while (told().length < 3) await new Promise((resolve) => setTimeout(resolve, 10));
  t.deepEqual(
    told().map(({ unreadShare }) => unreadShare),
    [0, 1, 0.43],
  );
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
