/** Maps that do not grow. */
import test from 'ava';
import { createBoundedMap } from '../../src/domain/bounded-map.ts';
import { createSlowest } from '../../src/domain/slowest.ts';

test('what was set longest ago is pushed out', (t) => {
  const map = createBoundedMap<string, number>({ bound: 2 });
  map.set('a', 1);
  map.set('b', 2);
  map.set('a', 3);
  map.set('c', 4);
  t.deepEqual([map.get('a'), map.get('b'), map.get('c')], [3, undefined, 4]);
  map.delete('a');
  map.delete('a');
  t.is(map.size, 1);
});

test('values weigh what they weigh; one that is too heavy is not kept', (t) => {
  const map = createBoundedMap<string, string>({ bound: 10, weigh: (value) => value.length });
  map.set('a', 'xxxx');
  map.set('b', 'xxxx');
  map.set('c', 'xxxxxxx');
  t.deepEqual([map.get('a'), map.get('b'), map.get('c')], [undefined, undefined, 'xxxxxxx']);
  map.set('d', 'x'.repeat(11));
  t.is(map.get('d'), undefined);
  t.is(map.get('c'), 'xxxxxxx');
  map.set('c', 'x');
  map.set('e', 'x'.repeat(9));
  t.is(map.size, 2);
});

test('what must be kept is, as far as the map looks', (t) => {
  const map = createBoundedMap<number, boolean>({ bound: 3, keep: (value) => value });
  map.set(1, true);
  map.set(2, false);
  map.set(3, true);
  map.set(4, false);
  t.deepEqual([map.get(1), map.get(2), map.get(3), map.get(4)], [true, undefined, true, false]);
  for (let key = 10; key < 30; key++) map.set(key, true);
  t.true(map.size > 3);
});

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
