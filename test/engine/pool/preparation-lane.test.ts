/** Owners take turns in a lane, in cost. */
import test from 'ava';
import { createPreparationLane, type LaneItem } from '../../../src/engine/pool/preparations.ts';

let sequence = 0;
const piece = (tenant: string, cost: number, left = cost): LaneItem => {
  sequence += 1;
  return { tenant, cost, left, rank: sequence, sequence };
};
const wanted = () => true;

test('an owner with many preparations holds up another by its share alone', (t) => {
  const lane = createPreparationLane();
  for (let i = 0; i < 24; i += 1) lane.add(piece('greedy', 20, 500));
  lane.add(piece('modest', 5));
  const order = Array.from({ length: 4 }, () => lane.take(wanted)?.tenant);
  t.true(order.includes('modest'), order.join());
});

test('what an owner must wait for is no more than twice its own while one other waits', (t) => {
  const lane = createPreparationLane();
  for (let i = 0; i < 24; i += 1) lane.add(piece('greedy', 20, 500));
  t.is(lane.costUntilDone('modest', 30), 60);
  t.is(lane.costUntilDone('greedy', 30), 24 * 500 + 30);
  for (const tenant of ['a', 'b']) lane.add(piece(tenant, 10));
  t.is(lane.costUntilDone('modest', 30), 30 + 30 + 10 + 10);
});

test('what nobody waits for any more is dropped', (t) => {
  const lane = createPreparationLane();
  lane.add(piece('a', 10));
  lane.add(piece('b', 10));
  t.is(lane.take(({ tenant }) => tenant === 'b')?.tenant, 'b');
  t.is(lane.take(wanted), undefined);
});
