/**
 * What counts limits must do, in this process and across replicas. Time is real: a caller that waits as it was
 * told is admitted.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LimitDemand, LimitVerdict } from '../../src/stores/stores.ts';
import { type DeclareTest, newOwner } from './catalog-store-suite.ts';

/** The counter, with or without a promise. */
export interface Counter {
  take(demand: LimitDemand): LimitVerdict | Promise<LimitVerdict>;
  release(subject: string, lease: string): void;
}

/** Declares the suite's tests over a counter that works when they run. */
export function limitStoreSuite(test: DeclareTest, name: string, counter: () => Counter): void {
  const kinds = async (count: number, demand: (index: number) => LimitDemand): Promise<string[]> => {
    const found: string[] = [];
    for (let index = 0; index < count; index++) {
      const verdict = await counter().take(demand(index));
      found.push(verdict.kind === 'refused' ? verdict.by : verdict.kind);
    }
    return found;
  };

  test(`${name}: a burst is admitted, the next one waits as long as it is told`, async (t) => {
    const demand = { subject: newOwner(), rate: { perSecond: 4, burst: 5 } };
    const began = performance.now();
    t.deepEqual(await kinds(5, () => demand), new Array(5).fill('admitted'));
    let admitted = 5;
    // While a machine stands still tokens come: never more than time has passed for.
    const takeNext = async () => {
      const verdict = await counter().take(demand);
      if (verdict.kind === 'admitted') admitted++;
      t.true(admitted - 5 <= (4 * (performance.now() - began + 1)) / 1000);
      return verdict;
    };
    for (let round = 0; round < 3; round++) {
      let verdict = await takeNext();
      while (verdict.kind === 'admitted') verdict = await takeNext();
      if (verdict.by !== 'rate') return t.fail(`refused by ${verdict.by} in round ${round}`);
      t.true(verdict.waitMs > 0 && verdict.waitMs <= 250, `${verdict.waitMs} ms`);
      // A timer leaves out fractions of a millisecond, and may fire up to one early.
      await sleep(Math.ceil(verdict.waitMs) + 1);
      t.is((await takeNext()).kind, 'admitted');
    }
  });

  test(`${name}: a limit that was lowered does not lock its caller out`, async (t) => {
    const subject = newOwner();
    await kinds(100, () => ({ subject, rate: { perSecond: 0.1, burst: 100 } }));
    // A second apart: a test that waits for its turn of the event loop between two takes must not see a token come.
    const lowered = { subject, rate: { perSecond: 1, burst: 2 } };
    t.deepEqual(await kinds(2, () => lowered), ['admitted', 'rate']);
    const verdict = await counter().take(lowered);
    if (verdict.kind !== 'refused' || verdict.by !== 'rate') return t.fail(verdict.kind);
    t.true(verdict.waitMs <= 1_000);
    await sleep(Math.ceil(verdict.waitMs) + 1);
    t.is((await counter().take(lowered)).kind, 'admitted');
  });

  test(`${name}: leases are counted, given back, and end by themselves`, async (t) => {
    const subject = newOwner();
    const demand = (lease: string, leaseMs = 60_000) => ({ subject, concurrency: { limit: 2, lease, leaseMs } });
    t.deepEqual(await kinds(3, (index) => demand(`lease-${index}`)), ['admitted', 'admitted', 'concurrency']);
    counter().release(subject, 'lease-0');
    counter().release(subject, 'lease-0');
    await sleep(20);
    t.deepEqual(await kinds(2, (index) => demand(`again-${index}`)), ['admitted', 'concurrency']);
    const refused = await counter().take(demand('late'));
    t.true(
      refused.kind === 'refused' && refused.by === 'concurrency' && refused.oldestMs >= 15 && refused.oldestMs < 10_000,
    );
  });

  test(`${name}: a quota ends with the day`, async (t) => {
    const subject = newOwner();
    t.deepEqual(await kinds(4, () => ({ subject, quota: 3 })), ['admitted', 'admitted', 'admitted', 'quota']);
    const verdict = await counter().take({ subject, quota: 3 });
    const left = 86_400_000 - (Date.now() % 86_400_000);
    t.true(verdict.kind === 'refused' && verdict.by === 'quota' && Math.abs(verdict.waitMs - left) < 2_000);
  });

  test(`${name}: a refusal by one limit takes nothing from the others`, async (t) => {
    const subject = newOwner();
    const demand = (lease: string, limit: number, quota: number, burst: number): LimitDemand => ({
      subject,
      rate: { perSecond: 0.001, burst },
      concurrency: { limit, lease, leaseMs: 60_000 },
      quota,
    });
    t.is((await counter().take(demand('a', 1, 2, 3))).kind, 'admitted');
    for (let round = 0; round < 5; round++) {
      t.like(await counter().take(demand('b', 1, 2, 3)), { by: 'concurrency' });
    }
    counter().release(subject, 'a');
    await sleep(20);
    t.is((await counter().take(demand('c', 1, 2, 3))).kind, 'admitted');
    counter().release(subject, 'c');
    await sleep(20);
    for (let round = 0; round < 5; round++) t.like(await counter().take(demand('d', 1, 2, 3)), { by: 'quota' });
    t.is((await counter().take(demand('e', 1, 3, 3))).kind, 'admitted');
    counter().release(subject, 'e');
    await sleep(20);
    t.like(await counter().take(demand('f', 1, 9, 3)), { by: 'rate' });
  });

  test(`${name}: subjects do not share`, async (t) => {
    const rate = { perSecond: 0.001, burst: 1 };
    t.deepEqual(await kinds(3, () => ({ subject: newOwner(), rate })), new Array(3).fill('admitted'));
  });
}
