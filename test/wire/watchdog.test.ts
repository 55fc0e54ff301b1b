/** The watchdog: what it lets go of, when it refuses, and that memory leaves the process at once. */
import { connect } from 'node:net';
import { memoryUsage } from 'node:process';
import test from 'ava';
import { Collector, Watchdog } from '../../src/wire/watchdog.ts';
import { startService } from '../support/service.ts';

const MIB = 1024 * 1024;

/** Vitals that a test sets. */
function settable() {
  return {
    bytes: 0,
    delay: 0,
    memory() {
      return this.bytes;
    },
    loopDelay() {
      return this.delay;
    },
    close() {},
  };
}

test('closes idle connections from 92 % of a bound, refuses from 95 %, callers with a key last, and takes work again below; a delay counts when it lasts', (t) => {
  const vitals = settable();
  const changes: string[] = [];
  let closed = 0;
  const note = ({ refused }: { readonly refused: string }) => changes.push(refused);
  const watchdog = new Watchdog({ memoryLimit: 1000, vitals, logger: { info: note, warn: note } as never });
  watchdog.start(() => (closed += 1));
  t.teardown(() => watchdog.close());
  for (const [bytes, delay, closings, refused] of [
    [919, 0, 0, 'nobody'],
    [920, 0, 1, 'nobody'],
    [950, 0, 2, 'anonymous'],
    [951, 0, 3, 'anonymous'],
    [949, 0, 4, 'nobody'],
    [0, 2000, 4, 'nobody'],
    [0, 480, 5, 'anonymous'],
    [0, 999, 6, 'anonymous'],
    [0, 1000, 7, 'anonymous'],
    [0, 1000, 8, 'everybody'],
    [1000, 0, 9, 'everybody'],
    [999, 0, 10, 'anonymous'],
    [0, 2000, 10, 'nobody'],
    [0, 0, 10, 'nobody'],
  ] as const) {
    vitals.bytes = bytes;
    vitals.delay = delay;
    watchdog.look();
    t.is(closed, closings, `${bytes} bytes, ${delay} ms`);
    t.is(watchdog.refused, refused, `${bytes} bytes, ${delay} ms`);
  }
  t.deepEqual(changes, ['anonymous', 'nobody', 'anonymous', 'everybody', 'anonymous', 'nobody']);
});

test('a service near its memory bound refuses decisions, still shows its models, and closes idle connections', async (t) => {
  const vitals = settable();
  const service = await startService({ UMPIRE_MEMORY: '1000' }, { vitals });
  t.teardown(() => service.stop());
  const idle = connect(service.port, '127.0.0.1');
  idle.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
  await new Promise((resolve) => idle.once('data', resolve));
  const ended = new Promise((resolve) => idle.once('close', resolve));
  idle.resume();

  vitals.bytes = 990 * MIB;
  await ended;
  const body = JSON.stringify({ model: 'minilm-l6', input: 'a', instruction: 'b', choices: ['c', 'd'] });
  const decide = () =>
    fetch(`${service.url}/v1/decisions`, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
  const refused = await decide();
  t.is(refused.status, 503);
  t.is(refused.headers.get('retry-after'), '1');
  t.like(await refused.json(), { error: { code: 'overloaded', type: 'server_error' } });
  t.is((await fetch(`${service.url}/v1/models`)).status, 200);

  vitals.bytes = 0;
  await new Promise((resolve) => setTimeout(resolve, 700));
  t.is((await decide()).status, 200);
});

test('memory that was let go is given back to the system', async (t) => {
  let held: object[] | undefined = Array.from({ length: 1_000_000 }, (_, index) => ({ index, list: [`x${index}`] }));
  const full = memoryUsage.rss();
  t.is(held.length, 1_000_000);
  held = undefined;
  // A turn of the event loop, so that no register holds it.
  await new Promise((resolve) => setTimeout(resolve, 10));
  t.true(new Collector().collect());
  t.true(memoryUsage.rss() < full - 80 * 1024 * 1024, `${full} -> ${memoryUsage.rss()}`);
});

test('it does so now and then alone', (t) => {
  const collector = new Collector();
  t.true(collector.collect());
  for (let count = 0; count < 1000; count += 1) t.false(collector.collect());
});
