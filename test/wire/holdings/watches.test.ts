/**
 * `Health.Watch` is bounded for an address, in all and in time; the oldest watch makes room, and its
 * stream ends in order.
 */
import { connect } from 'node:http2';
import test from 'ava';
import { untilHeld } from '../../support/held.ts';
import { FLAG, openRawHttp2, type RawHttp2, TYPE, watch } from '../../support/http2-frames.ts';
import { scriptedService } from '../../support/service.ts';

const EMPTY = Buffer.alloc(5);

/** Whether a stream has ended with trailers, which say that all is well. */
const ended = ({ received }: RawHttp2, stream: number): boolean =>
  received.some((each) => each.stream === stream && each.type === TYPE.headers && (each.flags & FLAG.endStream) !== 0);

async function untilEnded(raw: RawHttp2, stream: number): Promise<void> {
  for (let tries = 0; tries < 500 && !ended(raw, stream); tries += 1) await new Promise((next) => setTimeout(next, 20));
}

test('for one address: the oldest ends, those of others stay', async (t) => {
  const service = await scriptedService(t, { UMPIRE_WATCHES_PER_ADDRESS: '3' });
  const neighbour = await openRawHttp2(service.port, {}, { localAddress: '127.0.0.2' });
  neighbour.send(watch(1));
  await neighbour.until(TYPE.data, 1);
  const raw = await openRawHttp2(service.port);
  for (let stream = 1; stream < 100; stream += 2) raw.send(watch(stream));
  await raw.until(TYPE.data, 99);
  await untilHeld(service, ({ watches, requests }) => watches === 4 && requests === 4);
  await untilEnded(raw, 1);
  t.true(ended(raw, 1));
  t.false(ended(raw, 99));
  t.false(ended(neighbour, 1));
  t.is(service.app.holdings().tally.watchesEnded.displaced, 47);
  raw.destroy();
  neighbour.destroy();
  await untilHeld(service, ({ watches, requests }) => watches + requests === 0);
});

test('in all', async (t) => {
  const service = await scriptedService(t, { UMPIRE_MAX_WATCHES: '2' });
  const raws = await Promise.all(
    [2, 3, 4].map((host) => openRawHttp2(service.port, {}, { localAddress: `127.0.0.${host}` })),
  );
  for (const raw of raws) {
    raw.send(watch(1));
    await raw.until(TYPE.data, 1);
  }
  await untilHeld(service, ({ watches }) => watches === 2);
  await untilEnded(raws[0] as RawHttp2, 1);
  t.deepEqual(
    raws.map((raw) => ended(raw, 1)),
    [true, false, false],
  );
  for (const raw of raws) raw.destroy();
});

test('in time', async (t) => {
  const service = await scriptedService(t, { UMPIRE_WATCH_TIME: '1' });
  const raw = await openRawHttp2(service.port);
  raw.send(watch(1));
  await raw.until(TYPE.data, 1);
  await untilHeld(service, ({ watches }) => watches === 0);
  await untilHeld(service, ({ requests }) => requests === 0);
  await untilEnded(raw, 1);
  t.true(ended(raw, 1));
  t.is(service.app.holdings().tally.watchesEnded.age, 1);
  t.false(raw.closed);
  raw.destroy();
});

test('watches of a caller that goes without a word are over', async (t) => {
  const service = await scriptedService(t);
  const session = connect(service.url);
  session.on('error', () => {});
  for (let count = 0; count < 10; count += 1) {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Watch',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => {});
    stream.end(EMPTY);
  }
  await untilHeld(service, ({ watches }) => watches === 10);
  session.destroy();
  await untilHeld(service, ({ watches, requests, connections }) => watches + requests + connections === 0);
  t.pass();
});
