/** What counts for the rate of an address, how much, and what becomes of one that goes on beyond its rate. */
import test from 'ava';
import { Account, COSTS, note, take } from '../../../src/wire/holdings/accounts.ts';
import { untilHeld } from '../../support/held.ts';
import { send } from '../../support/http.ts';
import {
  FLAG,
  frame,
  GRPC_HEADERS,
  headers,
  JSON_HEADERS,
  openRawHttp2,
  type RawHttp2,
  request,
  rst,
  TYPE,
} from '../../support/http2-frames.ts';
import { until } from '../../support/redis.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { scriptedService } from '../../support/service.ts';

/** The default. */
const RATE = { perSecond: 5000, burst: 20_000 };

for (const [what, cost, burst, perSecond] of [
  ['connections', COSTS.connection, 1000, 250],
  ['requests', COSTS.request, 20_000, 5000],
  ['requests that no other limit counts', COSTS.request + COSTS.lookup, 400, 100],
  ['requests that are taken back', COSTS.request + COSTS.reset, 4000, 1000],
] as const) {
  test(`by default an address has ${burst} ${what} at once, and ${perSecond} a second`, (t) => {
    const account = new Account('192.0.2.1');
    let at = 0;
    const taken = (): number => {
      let count = 0;
      while (take(account, cost, RATE, at)) count += 1;
      return count;
    };
    t.is(taken(), burst);
    at += 1000;
    t.is(taken(), perSecond);
  });
}

/** Asks at an even pace for a minute from when the burst is used up; stops where the address is blocked. */
function insist(perSecond: number, cost: number): { readonly share: number; readonly blocked: boolean } {
  const account = new Account('192.0.2.1');
  while (take(account, COSTS.request, RATE, 0));
  let served = 0;
  for (let asked = 1; asked <= 60 * perSecond; asked += 1) {
    const now = (asked * 1000) / perSecond;
    if (take(account, cost, RATE, now)) served += 1;
    else if (!note(account, COSTS.refused, RATE, now)) return { share: served / 60 / RATE.perSecond, blocked: true };
  }
  return { share: served / 60 / RATE.perSecond, blocked: false };
}

for (const [times, least, most, blocked] of [
  [1, 1, 1, false],
  [1.1, 0.89, 0.91, false],
  [1.5, 0.49, 0.51, false],
  [2, 0, 0.01, false],
  [2.5, 0, 0.01, true],
  [20, 0, 0.01, true],
] as const) {
  test(`an address that goes on with ${times} times its rate is served ${least} of it${blocked ? ', then blocked' : ''}`, (t) => {
    const outcome = insist(RATE.perSecond * times, COSTS.request);
    t.is(outcome.blocked, blocked);
    t.true(outcome.share >= least && outcome.share <= most + 1e-3, `${outcome.share}`);
  });
}

test('look-ups beyond the rate take nothing from the decisions of their address', (t) => {
  const account = new Account('192.0.2.1');
  let [lookups, decisions] = [0, 0];
  // 800 look-ups and 200 decisions a second, for a minute.
  for (let step = 0; step < 60_000; step += 1) {
    if (!take(account, COSTS.request, RATE, step)) continue;
    if (step % 5 === 4) decisions += 1;
    else if (take(account, COSTS.lookup, RATE, step)) lookups += 1;
  }
  t.is(decisions, 12_000);
  t.true(lookups > 400 + 60 * 10 && lookups < 400 + 60 * 100, `${lookups}`);
});

const DECIDE = request('POST', '/v1/decisions', JSON_HEADERS);
const EMPTY_CALL = (path: string) => [
  headers(1, request('POST', path, GRPC_HEADERS), FLAG.endHeaders),
  frame(TYPE.data, 1, Buffer.alloc(5), FLAG.endStream),
];
const get = (path: string, stream = 1): Buffer => headers(stream, request('GET', path));
const ended = ({ received }: RawHttp2, stream: number): boolean =>
  received.some((each) => each.stream === stream && (each.flags & FLAG.endStream) !== 0);

/** What a caller sends on stream 1, and how many requests that costs it. */
const EVENTS: Readonly<Record<string, readonly [cost: number, ...bytes: readonly Buffer[]]>> = {
  'a probe': [1, get('/health/ready')],
  'a decision, wrong as it is': [1, headers(1, DECIDE, FLAG.endHeaders), frame(TYPE.data, 1, Buffer.from('{}'), 1)],
  'a list of models': [50, get('/v1/models')],
  'a list of models by gRPC': [50, ...EMPTY_CALL('/umpire.v1.ModelService/ListModels')],
  'a check of health by gRPC': [50, ...EMPTY_CALL('/grpc.health.v1.Health/Check')],
  'an unknown path': [50, get('/none')],
  'a page': [50, get('/')],
  'a catalog without a key': [50, get('/v1/catalogs/none')],
  'a request that is taken back at once': [5, headers(1, DECIDE, FLAG.endHeaders), rst(1, 8)],
};

for (const [what, [cost, ...bytes]] of Object.entries(EVENTS)) {
  test(`${what} counts as ${cost}`, async (t) => {
    const service = await scriptedService(
      t,
      { UMPIRE_REQUEST_RATE: '1/h, burst 100', UMPIRE_TRUSTED_PROXIES: '127.0.0.1' },
      createScriptedEngine(),
    );
    const raw = await openRawHttp2(service.port);
    await raw.until(TYPE.settings);
    raw.send(Buffer.concat(bytes));
    if (cost === 5) await untilHeld(service, ({ tally, requests }) => tally.resets === 1 && requests === 0);
    else await raw.until(TYPE.headers, 1);
    await untilHeld(service, ({ requests }) => requests === 0);
    // As many more as there would be for the address if it had done nothing.
    for (let stream = 3; stream < 203; stream += 2) {
      raw.send(get('/health/live', stream));
      await raw.until(TYPE.headers, stream);
    }
    t.is(service.app.holdings().tally.beyondRate, cost);
    raw.destroy();
  });
}

test('behind a trusted proxy one who goes on is not served for some seconds, and others are', async (t) => {
  const service = await scriptedService(t, {
    UMPIRE_REQUEST_RATE: '20/s, burst 60',
    UMPIRE_TRUSTED_PROXIES: '127.0.0.1',
  });
  const raw = await openRawHttp2(service.port);
  await raw.until(TYPE.settings);
  const flood = Array.from({ length: 99 }, (_, index) => get('/health/live', 2 * index + 1));
  raw.send(Buffer.concat(flood));
  await until(() => ended(raw, 197));
  raw.send(Buffer.concat(flood.map((_, index) => get('/health/live', 199 + 2 * index))));
  await untilHeld(service, ({ tally }) => tally.blocked === 1);
  const began = performance.now();
  const answer = await send(service.port, { path: '/health/live' });
  t.is(answer.status, 429);
  t.true(Number(answer.headers['retry-after']) >= 2, answer.headers['retry-after']);
  const other = { path: '/health/live', headers: { 'x-forwarded-for': '192.0.2.1' } };
  t.is((await send(service.port, other)).status, 200);
  let status = 429;
  while (status === 429) {
    ({ status } = await send(service.port, { path: '/health/live' }));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  t.true(performance.now() - began > 2000);
  t.is(service.app.holdings().tally.blocked, 1);
  raw.destroy();
});
