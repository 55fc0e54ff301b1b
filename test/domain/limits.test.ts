/** Limits of callers: whose they are, what a refusal says, when the shared store is away, and of bytes of bodies. */
import test from 'ava';
import type { Caller } from '../../src/domain/authenticate.ts';
import { BodyLimits, type BodyRates } from '../../src/domain/body-limits.ts';
import { DomainError } from '../../src/domain/errors.ts';
import { judgeRate } from '../../src/domain/gcra.ts';
import {
  LIMIT_SETTINGS,
  type LimitSettings,
  limitsOf,
  parseCount,
  parseRate,
} from '../../src/domain/limit-settings.ts';
import { type LimitedWork, Limits, Slowest } from '../../src/domain/limits.ts';
import { LocalLimits } from '../../src/domain/local-limits.ts';
import { readSettings } from '../../src/domain/settings.ts';
import { createStoreBudget } from '../../src/stores/budget.ts';
import type { KeyLimits } from '../../src/stores/key-store.ts';
import { type LimitStore, StoreUnavailable } from '../../src/stores/stores.ts';
import { limitStoreSuite } from '../stores/limit-store-suite.ts';
import { createRecordedLog } from '../support/log.ts';

const local = new LocalLimits();
limitStoreSuite(test, 'in this process', () => local);

const OFF = { rate: 'off', concurrency: 'off', quota: 'off' } as const;
const anonymous = (address = '192.0.2.1'): Caller => ({ kind: 'anonymous', address });
const keyed = (limits: KeyLimits = {}, keyId = 'key_1'): Caller => ({
  kind: 'key',
  owner: 'acme',
  keyId,
  address: '192.0.2.1',
  limits,
});

function start(settings: Partial<LimitSettings>, store?: LimitStore) {
  let now = 1_800_000_000_000;
  const log = createRecordedLog();
  const limits = new Limits({
    settings: { anonymous: OFF, key: OFF, ...settings },
    store,
    log,
    clock: () => now,
    wallClock: () => now,
  });
  return { limits, log, pass: (milliseconds: number) => (now += milliseconds) };
}

const refusal = async (limits: Limits, caller: Caller, work: LimitedWork = 'decision') => {
  try {
    await limits.grant(caller, work, createStoreBudget());
    return undefined;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return { reason: error.reason, retryAfter: error.retryAfter };
  }
};

test('without limits nothing is counted, and the answer is there at once', (t) => {
  const { limits } = start({});
  t.false(limits.grant(anonymous(), 'decision', createStoreBudget()) instanceof Promise);
});

test('a caller that waits as long as it is told is admitted, whatever the rate', async (t) => {
  for (const perSecond of [0.3, 1, 7, 50, 999]) {
    const { limits, pass } = start({ anonymous: { ...OFF, rate: { perSecond, burst: 3 } } });
    for (let round = 0; round < 100; round++) {
      const refused = await refusal(limits, anonymous());
      if (refused === undefined) continue;
      t.is(refused.reason, 'RATE_LIMIT_EXCEEDED');
      t.true(Number.isInteger(refused.retryAfter) && (refused.retryAfter ?? 0) >= 1);
      pass((refused.retryAfter ?? 0) * 1000);
      t.is(await refusal(limits, anonymous()), undefined);
    }
  }
});

test('catalog calls count for the rate alone', async (t) => {
  const { limits } = start({ key: { rate: { perSecond: 0.01, burst: 4 }, concurrency: 1, quota: 1 } });
  for (let round = 0; round < 3; round++) t.is(await refusal(limits, keyed(), 'catalog'), undefined);
  t.is(await refusal(limits, keyed()), undefined);
  t.is((await refusal(limits, keyed(), 'catalog'))?.reason, 'RATE_LIMIT_EXCEEDED');
});

test('places are given back once, and a refusal says when the slowest would have ended', async (t) => {
  const { limits, pass } = start({ anonymous: { ...OFF, concurrency: 2 } });
  const [one, two] = [
    await limits.grant(anonymous(), 'decision', createStoreBudget()),
    await limits.grant(anonymous(), 'decision', createStoreBudget()),
  ];
  t.deepEqual(await refusal(limits, anonymous()), { reason: 'CONCURRENCY_LIMIT_EXCEEDED', retryAfter: 1 });
  pass(4_200);
  one.release();
  one.release();
  const three = await limits.grant(anonymous(), 'decision', createStoreBudget());
  pass(100);
  t.is((await refusal(limits, anonymous()))?.retryAfter, 1);
  two.release();
  const four = await limits.grant(anonymous(), 'decision', createStoreBudget());
  // The slowest took 4.3 s, the oldest has been at it for 0.1 s.
  t.is((await refusal(limits, anonymous()))?.retryAfter, 5);
  three.release();
  four.release();
  t.is(await refusal(limits, anonymous()), undefined);
});

test('a quota comes back with the next day', async (t) => {
  const { limits, pass } = start({ anonymous: { ...OFF, quota: 2 } });
  await limits.grant(anonymous(), 'decision', createStoreBudget());
  await limits.grant(anonymous(), 'decision', createStoreBudget());
  const refused = await refusal(limits, anonymous());
  t.is(refused?.reason, 'QUOTA_EXCEEDED');
  pass((refused?.retryAfter ?? 0) * 1000 - 1_000);
  t.truthy(await refusal(limits, anonymous()));
  pass(1_000);
  t.is(await refusal(limits, anonymous()), undefined);
});

test('while the shared store is away this process counts, says so once, and stops when it is back', async (t) => {
  let away = false;
  const shared = new LocalLimits();
  const store: LimitStore = {
    async take(demand, budget) {
      budget.remaining -= 40;
      if (away) throw new StoreUnavailable('away');
      return shared.take(demand);
    },
    release: (subject, lease) => shared.release(subject, lease),
  };
  const { limits, log, pass } = start({ anonymous: { ...OFF, rate: { perSecond: 0.0001, burst: 2 } } }, store);
  const budget = createStoreBudget();
  await limits.grant(anonymous(), 'decision', budget);
  t.is(budget.remaining, 210);
  away = true;
  t.is(await refusal(limits, anonymous()), undefined);
  t.is(await refusal(limits, anonymous()), undefined);
  t.is((await refusal(limits, anonymous()))?.reason, 'RATE_LIMIT_EXCEEDED');
  away = false;
  t.is(await refusal(limits, anonymous()), undefined);
  t.is((await refusal(limits, anonymous()))?.reason, 'RATE_LIMIT_EXCEEDED');
  const levels = () => log.lines.map(({ level }) => level);
  t.deepEqual(levels(), ['warn']);
  pass(6_000);
  await refusal(limits, anonymous());
  t.deepEqual(levels(), ['warn', 'info']);
});

test('a hundred thousand addresses are counted, more push the idle out', (t) => {
  const few = new LocalLimits({}, 3);
  const demand = (subject: string, lease: string) => ({
    subject,
    rate: { perSecond: 0.001, burst: 1 },
    concurrency: { limit: 5, lease, leaseMs: 1_000 },
  });
  for (const subject of ['busy', 'a', 'b', 'c', 'd']) {
    t.is(few.take(demand(subject, subject)).kind, 'admitted');
    if (subject !== 'busy') few.release(subject, subject);
  }
  t.is(few.take(demand('busy', 'again')).kind, 'refused');
  t.is(few.take(demand('a', 'again')).kind, 'admitted');
});

test('a clock that is set back locks nobody out and gives no second quota', async (t) => {
  let wall = 1_800_000_000_000;
  let now = 5_000;
  const counter = new LocalLimits({ clock: () => now, wallClock: () => wall });
  const demand = { subject: 'address:x', rate: { perSecond: 1, burst: 2 }, quota: 3 };
  t.deepEqual([counter.take(demand).kind, counter.take(demand).kind], ['admitted', 'admitted']);
  wall -= 86_400_000;
  now += 1_000;
  t.is(counter.take(demand).kind, 'admitted');
  now += 1_000;
  t.like(counter.take(demand), { kind: 'refused', by: 'quota' });
});

test('a clock that jumped ahead once and was set right leaves no quota used up', (t) => {
  const day = 86_400_000;
  let wall = 1_800_000_000_000;
  const counter = new LocalLimits({ clock: () => 0, wallClock: () => wall });
  const take = () => counter.take({ subject: 'key:k', quota: 3 }).kind;
  const kinds = (count: number) => Array.from({ length: count }, take);
  t.deepEqual(kinds(2), ['admitted', 'admitted']);
  wall += 3650 * day;
  t.deepEqual(kinds(4), ['admitted', 'admitted', 'admitted', 'refused']);
  wall -= 3650 * day;
  // The day has the count that it had, and all after it their own.
  t.deepEqual(kinds(2), ['admitted', 'refused']);
  for (let round = 0; round < 3; round++) {
    wall += day;
    t.deepEqual(kinds(4), ['admitted', 'admitted', 'admitted', 'refused']);
  }
});

test('a stored arrival time that lies further ahead than a request can move it refuses nothing', (t) => {
  const rate = { perSecond: 10, burst: 2 };
  t.like(judgeRate(rate, 3_600_000, 1_000), { kind: 'within', tat: 1_200 });
});

test('the slowest of late is forgotten after one to two minutes', (t) => {
  let now = 1_000_000_020_000;
  const slowest = new Slowest(() => now);
  t.is(slowest.read(), 0);
  slowest.note(500);
  slowest.note(100);
  t.is(slowest.read(), 500);
  now += 60_000;
  slowest.note(50);
  t.is(slowest.read(), 500);
  now += 60_000;
  t.is(slowest.read(), 50);
  now += 600_000;
  t.is(slowest.read(), 0);
});

const MIB = 1024 * 1024;
const nobody = (address: string): Caller => ({ kind: 'anonymous', address });
const holder = (keyId: string): Caller => ({ kind: 'key', owner: 'o', keyId, address: '192.0.2.1', limits: {} });
const NO_BODIES: BodyRates = { anonymous: 'off', key: 'off', all: 'off' };

test('an address may send its burst at once and its rate after it, and another address is not held up', (t) => {
  let now = 0;
  const limits = new BodyLimits({ ...NO_BODIES, anonymous: { perSecond: 2, burst: 4 } }, 'requests', () => now);
  const meter = (bytes: number) => limits.count(nobody('192.0.2.1'), bytes);
  for (let chunk = 0; chunk < 4; chunk += 1) t.is(meter(MIB), undefined);
  t.like(meter(0), { reason: 'RATE_LIMIT_EXCEEDED', retryAfter: 1 });
  t.is(limits.count(nobody('192.0.2.2'), MIB), undefined);
  t.is(limits.count(holder('k'), MIB), undefined);
  now += 500;
  t.is(meter(MIB), undefined);
  t.like(meter(1), { reason: 'RATE_LIMIT_EXCEEDED' });
});

test('of what all may send together callers without a key leave a fifth to the others', (t) => {
  const limits = new BodyLimits({ ...NO_BODIES, all: { perSecond: 1, burst: 10 } }, 'requests', () => 0);
  for (let address = 0; address < 8; address += 1) t.is(limits.count(nobody(`192.0.2.${address}`), MIB), undefined);
  t.like(limits.count(nobody('192.0.2.99'), MIB), { reason: 'OVERLOADED' });
  const meter = (bytes: number) => limits.count(holder('k'), bytes);
  t.is(meter(MIB), undefined);
  t.is(meter(MIB), undefined);
  t.like(meter(MIB), { reason: 'OVERLOADED' });
});

for (const [text, value] of [
  ['50/s', { perSecond: 50, burst: 100 }],
  ['50/s, burst 70', { perSecond: 50, burst: 70 }],
  ['50/s burst=1', { perSecond: 50, burst: 1 }],
  [' 600/m ', { perSecond: 10, burst: 20 }],
  ['36/h', { perSecond: 0.01, burst: 1 }],
  ['0.5/s', { perSecond: 0.5, burst: 1 }],
  ['off', 'off'],
] as const) {
  test(`rate '${text}'`, (t) => {
    t.deepEqual(parseRate(text), { value });
  });
}

test('rates that are none', (t) => {
  for (const text of ['', '50', '0/s', '-1/s', '50/d', 'fast', '50/s, burst 0', '50/s, burst', '1e9/s', '9999999/s']) {
    t.true('problem' in parseRate(text), text);
  }
});

test('a rate whose waits could not be said is none, however it is written', (t) => {
  t.deepEqual(parseRate('1/h'), { value: { perSecond: 1 / 3600, burst: 1 } });
  for (const text of [`0.${'0'.repeat(30)}1/h`, '0.0001/h', `${'9'.repeat(400)}/s`, '1/s, burst 99999999'])
    t.true('problem' in parseRate(text), text);
});

test('counts', (t) => {
  t.deepEqual(parseCount('12'), { value: 12 });
  t.deepEqual(parseCount('off'), { value: 'off' });
  for (const text of ['', '0', '-1', '1.5', '01', 'many', '99999999999']) t.true('problem' in parseCount(text), text);
});

test('what is unset or empty has its default, what is wrong is named, all of it', (t) => {
  t.deepEqual(limitsOf(readSettings(LIMIT_SETTINGS, { UMPIRE_RATE_KEY: '' }).value), {
    anonymous: { rate: { perSecond: 200, burst: 1000 }, concurrency: 128, quota: 'off' },
    key: { rate: { perSecond: 1000, burst: 5000 }, concurrency: 512, quota: 'off' },
  });
  const { value, problems } = readSettings(LIMIT_SETTINGS, {
    UMPIRE_RATE_ANONYMOUS: 'off',
    UMPIRE_RATE_KEY: 'fast',
    UMPIRE_CONCURRENCY_ANONYMOUS: '3',
    UMPIRE_CONCURRENCY_KEY: '0',
    UMPIRE_QUOTA_ANONYMOUS: '7',
    UMPIRE_QUOTA_KEY: '-',
  });
  t.deepEqual(limitsOf(value).anonymous, { rate: 'off', concurrency: 3, quota: 7 });
  const found = problems.map((problem) => problem.split(':')[0]);
  t.deepEqual(found, ['UMPIRE_RATE_KEY', 'UMPIRE_CONCURRENCY_KEY', 'UMPIRE_QUOTA_KEY']);
});
