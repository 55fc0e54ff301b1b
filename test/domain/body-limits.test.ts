import test from 'ava';
import { type BodyRates, createBodyLimits } from '../../src/domain/body-limits.ts';
import type { Caller } from '../../src/domain/callers.ts';

const MIB = 1024 * 1024;
const anonymous = (address: string): Caller => ({ kind: 'anonymous', address });
const keyed = (keyId: string): Caller => ({ kind: 'key', owner: 'o', keyId, address: '192.0.2.1', limits: {} });
const OFF: BodyRates = { anonymous: 'off', key: 'off', all: 'off' };

test('an address may send its burst at once and its rate after it, and another address is not held up', (t) => {
  let now = 0;
  const limits = createBodyLimits({ ...OFF, anonymous: { perSecond: 2, burst: 4 } }, () => now);
  const meter = limits.meter(anonymous('192.0.2.1'));
  for (let chunk = 0; chunk < 4; chunk += 1) t.is(meter(MIB), undefined);
  t.like(meter(0), { reason: 'RATE_LIMIT_EXCEEDED', retryAfter: 1 });
  t.is(limits.meter(anonymous('192.0.2.2'))(MIB), undefined);
  t.is(limits.meter(keyed('k'))(MIB), undefined);
  now += 500;
  t.is(meter(MIB), undefined);
  t.like(meter(1), { reason: 'RATE_LIMIT_EXCEEDED' });
});

test('of what all may send together callers without a key leave a fifth to the others', (t) => {
  const limits = createBodyLimits({ ...OFF, all: { perSecond: 1, burst: 10 } }, () => 0);
  for (let address = 0; address < 8; address += 1) t.is(limits.meter(anonymous(`192.0.2.${address}`))(MIB), undefined);
  t.like(limits.meter(anonymous('192.0.2.99'))(MIB), { reason: 'OVERLOADED' });
  const meter = limits.meter(keyed('k'));
  t.is(meter(MIB), undefined);
  t.is(meter(MIB), undefined);
  t.like(meter(MIB), { reason: 'OVERLOADED' });
});
