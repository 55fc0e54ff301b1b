/** When an engine process is replaced for its size. */
import test from 'ava';
import { createRecycling } from '../../../src/engine/processes/recycling.ts';

const OLD = { lived: 1e9 };

test('an engine whose models fit is replaced above the limit, another one a quarter above its models', (t) => {
  const cases: readonly (readonly [resident: number, loaded: number | undefined, due: boolean])[] = [
    [100, 60, false],
    [101, 60, true],
    [101, 100, true],
    [125, 101, false],
    [127, 101, true],
    [150, 120, false],
    [151, 120, true],
    // Not known: its models changed while it worked.
    [101, undefined, true],
  ];
  for (const [resident, loaded, due] of cases) {
    t.is(createRecycling(100, 30).due({ ...OLD, resident, loaded }, 0), due, `${resident} of ${loaded}`);
  }
});

test('a young engine is not replaced', (t) => {
  const recycling = createRecycling(100, 30);
  t.false(recycling.due({ resident: 200, loaded: 60, lived: 29 }, 1000));
  t.true(recycling.due({ resident: 200, loaded: 60, lived: 30 }, 1001));
});

test('replacements that do not help become rare, and one that helps ends that', (t) => {
  const recycling = createRecycling(100, 30);
  const large = { ...OLD, resident: 200, loaded: 60 };
  let last = 0;
  const waits: number[] = [];
  t.true(recycling.due(large, 0));
  for (let now = 0; waits.length < 7; now++) {
    if (!recycling.due(large, now)) continue;
    waits.push(now - last);
    last = now;
  }
  t.deepEqual(waits, [30, 60, 120, 240, 480, 480, 480]);
  t.true(recycling.due(large, last + 2000));
  t.false(recycling.due(large, last + 2029));
  t.true(recycling.due(large, last + 2030));
});
