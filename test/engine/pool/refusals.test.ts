/** What the pool remembers of a flood. */
import test from 'ava';
import { RecentRefusals } from '../../../src/engine/pool/admission.ts';

test('several refusals in a second tell the least cost, until the second is over', (t) => {
  const refusals = new RecentRefusals();
  t.is(refusals.cheapest(0), undefined);
  for (let i = 0; i < 7; i++) refusals.note(20 - i, 1000 + i);
  t.is(refusals.cheapest(1010), undefined, 'seven may be chance');
  refusals.note(30, 1010);
  t.is(refusals.cheapest(1011), 14);
  refusals.note(5, 1500);
  t.is(refusals.cheapest(1999), 5);
  t.is(refusals.cheapest(2000), undefined, 'the next ones are read again');
  refusals.note(40, 2600);
  t.is(refusals.cheapest(2601), undefined);
  for (let i = 0; i < 7; i++) refusals.note(41, 2602);
  t.is(refusals.cheapest(2700), 40, 'what was before is forgotten');
});
