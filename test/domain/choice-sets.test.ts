import test from 'ava';
import { createChoiceSets } from '../../src/domain/choice-sets.ts';

test('a list that comes again has the same canonical list; another order has its own, equal one', (t) => {
  const sets = createChoiceSets();
  const canonical = (choices: readonly string[]): readonly string[] => {
    t.is(sets.fault(choices), undefined);
    return sets.sorted(choices);
  };
  const first = canonical(['b', 'a', 'c']);
  t.deepEqual(first, ['a', 'b', 'c']);
  t.is(canonical(['b', 'a', 'c']), first);
  t.deepEqual(canonical(['c', 'a', 'b']), first);
});

test('lists that look alike from their ends and middle are told apart', (t) => {
  const sets = createChoiceSets();
  const list = (second: string): readonly string[] => ['first', second, 'middle', 'fourth', 'last'];
  for (let round = 0; round < 3; round += 1) {
    for (const second of ['x', 'y', 'z']) {
      const choices = list(second);
      t.is(sets.fault(choices), undefined);
      t.deepEqual(sets.sorted(choices), choices.toSorted());
    }
  }
});

test('a fault is found every time, also after a sound list that looks alike', (t) => {
  const sets = createChoiceSets();
  t.is(sets.fault(['a', 'b', 'c', 'd', 'e']), undefined);
  for (let round = 0; round < 3; round += 1) {
    t.is(sets.fault(['a', 'a', 'c', 'd', 'e'])?.reason, 'INVALID_CHOICES');
    t.is(sets.fault(['a', '', 'c', 'd', 'e'])?.reason, 'INVALID_CHOICES');
    t.is(sets.fault(['a'])?.reason, 'INVALID_CHOICES');
  }
});

test('many and large lists are let go again', (t) => {
  const sets = createChoiceSets();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < 3000; index += 1) {
    const choices = [`${index}`, `${'x'.repeat(10_000)}${index}`, 'last'];
    sets.fault(choices);
    t.is(sets.sorted(choices).length, 3);
  }
  const huge = ['a', 'x'.repeat(900_000), 'c'];
  t.is(sets.fault(huge), undefined);
  t.deepEqual(sets.sorted(huge), huge.toSorted());
  t.true(process.memoryUsage().heapUsed - before < 100 * 1024 * 1024);
});
