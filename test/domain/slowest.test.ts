/** The slowest of late. */
import test from 'ava';
import { createSlowest } from '../../src/domain/limits.ts';

test('the slowest of late is forgotten after one to two minutes', (t) => {
  let now = 1_000_000_020_000;
  const slowest = createSlowest(() => now);
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
