/** What the metrics say while something is the matter: a queue, a limit, a store that is away, an engine that died. */
import { readFileSync } from 'node:fs';
import { pid } from 'node:process';
import test from 'ava';
import { decide } from '../../support/http.ts';
import { startRedis, until } from '../../support/redis.ts';
import { metricsPortOf, scrape } from '../../support/scrape.ts';
import { scriptedService, startService, type TestService } from '../../support/service.ts';

const BODY = {
  model: 'minilm-l6',
  input: 'I was charged twice for my order. '.repeat(6),
  instruction: 'Which team should handle this?',
  choices: ['charges', 'parcels', 'logins'],
};

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

test('the queue and the engine under load, and an engine that is killed', async (t) => {
  const service = await startService({ UMPIRE_METRICS_PORT: '0' });
  t.teardown(() => service.stop());
  const SENT = 60;
  const answers = Promise.all(Array.from({ length: SENT }, () => decide(service.port, BODY)));
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
