/** The queue's order and bounds, and what the pool remembers of a flood, without processes. */
import test from 'ava';
import fc from 'fast-check';
import { type AdmissionCase, RecentRefusals, refusalOf } from '../../../src/engine/pool/admission.ts';
import { FairQueue, type QueueItem, type RingItem, TenantRing } from '../../../src/engine/pool/fair-queue.ts';
import { rankOf } from '../../../src/engine/pool/job.ts';
import { restartDelay } from '../../../src/engine/processes/recycling.ts';

let sequence = 0;
const item = (tenant: string, cost: number, rank = 0, keyed = false): QueueItem => {
  return { tenant, cost, after: 0, rank, keyed, bytes: 100, sequence: ++sequence };
};
const anything = () => true;

test('what one tenant has is taken by rank and then in the order of arrival, whatever is removed meanwhile', (t) => {
  const operations = fc.array(fc.record({ rank: fc.nat(20), removes: fc.boolean(), pick: fc.nat() }), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(operations, (steps) => {
      const ring = new TenantRing();
      const model: RingItem[] = [];
      for (const { rank, removes, pick } of steps) {
        if (removes && model.length > 0) {
          const [gone] = model.splice(pick % model.length, 1);
          if (gone === undefined || !ring.remove(gone) || ring.remove(gone)) return false;
        } else {
          const added = item('a', 1, rank);
          model.push(added);
          ring.add(added);
        }
      }
      const taken = Array.from(model, () => ring.take(anything));
      model.sort((a, b) => a.rank - b.rank || a.sequence - b.sequence);
      return ring.all().length === 0 && taken.every((each, place) => each === model[place]);
    }),
  );
  t.pass();
});

test('tenants get equal shares of cost, however their work is cut', (t) => {
  const ring = new TenantRing();
  for (let i = 0; i < 1000; i++) ring.add(item('small', 5));
  for (let i = 0; i < 50; i++) ring.add(item('large', 400));
  for (let i = 0; i < 300; i++) ring.add(item('middle', 60));
  const served = new Map<string, number>();
  for (let spent = 0; spent < 12_000; ) {
    const taken = ring.take(anything);
    if (taken === undefined) break;
    spent += taken.cost;
    served.set(taken.tenant, (served.get(taken.tenant) ?? 0) + taken.cost);
  }
  for (const tenant of ['small', 'large', 'middle']) {
    const share = served.get(tenant) ?? 0;
    t.true(share > 3500 && share < 4500, `${tenant} got ${share} of 12000`);
  }
});

test('sending one large item at a time gains nothing', (t) => {
  const ring = new TenantRing();
  for (let i = 0; i < 1000; i++) ring.add(item('patient', 10));
  let greedy = 0;
  for (let spent = 0; spent < 8000; ) {
    if (ring.costOf('greedy') === 0) ring.add(item('greedy', 500));
    const taken = ring.take(anything);
    spent += taken?.cost ?? Number.POSITIVE_INFINITY;
    if (taken?.tenant === 'greedy') greedy += taken.cost;
  }
  t.true(greedy <= 4600, `the greedy tenant got ${greedy} of 8000`);
});

test('a tenant whose first item cannot be served holds nobody up', (t) => {
  const ring = new TenantRing();
  ring.add(item('blocked', 1));
  ring.add(item('free', 1));
  t.is(ring.take(({ tenant }) => tenant !== 'blocked')?.tenant, 'free');
  const found = ring.take(({ tenant }) => tenant !== 'blocked');
  t.is(found, undefined);
  t.is(ring.take(anything)?.tenant, 'blocked');
  t.is(ring.all().length, 0);
});

test('what waits for one engine keeps its turn there while another engine is served', (t) => {
  const ring = new TenantRing();
  for (let i = 0; i < 50; i++) ring.add(item('greedy right', 20));
  ring.add(item('modest right', 20));
  for (let i = 0; i < 50; i++) ring.add(item('greedy left', 20));
  const next = (engine: string) => ring.take(({ tenant }) => tenant.endsWith(engine))?.tenant;
  const order = Array.from({ length: 4 }, () => [next('left'), next('right')]).flat();
  t.true(order.includes('modest right'), order.join());
});

test('nothing is lost or served twice', (t) => {
  const works = fc.array(
    fc.record({
      tenant: fc.constantFrom('a', 'b', 'c', 'd'),
      cost: fc.integer({ min: 1, max: 2000 }),
      keyed: fc.boolean(),
    }),
    { maxLength: 80 },
  );
  fc.assert(
    fc.property(works, fc.nat(5), (list, removeEvery) => {
      const queue = new FairQueue<QueueItem>();
      const items = list.map(({ tenant, cost, keyed }) => item(tenant, cost, 0, keyed));
      for (const each of items) queue.add(each);
      const removed = items.filter((_, i) => removeEvery > 0 && i % (removeEvery + 1) === 0);
      for (const each of removed) if (!queue.remove(each)) return false;
      const taken = new Set<QueueItem>();
      for (let next = queue.take(anything); next !== undefined; next = queue.take(anything)) {
        if (taken.has(next) || removed.includes(next)) return false;
        taken.add(next);
      }
      const { jobs, bytes, cost } = queue.backlog('all');
      return taken.size + removed.length === items.length && jobs === 0 && bytes === 0 && cost === 0;
    }),
  );
  t.pass();
});

test('callers with a key get half the service while both wait, however many the others are', (t) => {
  const queue = new FairQueue<QueueItem>();
  for (let i = 0; i < 500; i++) queue.add(item(`address-${i}`, 10));
  for (let i = 0; i < 100; i++) queue.add(item('owner', 10, 0, true));
  const taken = Array.from({ length: 100 }, () => queue.take(anything));
  const keyed = taken.filter((each) => each?.keyed === true).length;
  t.true(keyed >= 49 && keyed <= 51, `${keyed} of 100`);
});

test('an owner with many preparations holds up another by its share alone', (t) => {
  const queue = new FairQueue<QueueItem>();
  for (let i = 0; i < 24; i++) queue.add({ ...item('greedy', 20, 0, true), after: 480 });
  t.is(queue.costAhead('modest', true, 50), 50, 'while its own is done, the other gets as much');
  t.is(queue.costAhead('modest', true, 5), 40, 'or what it gets in one visit');
  t.is(queue.costAhead('greedy', true, 30), 24 * 500);
  queue.add(item('modest', 5, 0, true));
  const order = Array.from({ length: 4 }, () => queue.take(anything)?.tenant);
  t.true(order.includes('modest'), order.join());
});

test('who has nothing waiting waits for a job of each who has', (t) => {
  const queue = new FairQueue<QueueItem>();
  for (let i = 0; i < 80; i++) queue.add(item(`address-${i}`, 100));
  t.is(queue.costAhead('newcomer', false, 100), 80 * 100);
  t.is(queue.costAhead('newcomer', false, 1), 80 * 100);
  for (let i = 0; i < 800; i++) queue.add(item('greedy', 10));
  t.is(queue.costAhead('newcomer', false, 100), 80 * 100 + 100);
});

test('short jobs come first, but not for ever', (t) => {
  const ring = new TenantRing();
  const add = (arrived: number, cost: number) => {
    const added = item('a', cost, rankOf(arrived, cost, { deadline: arrived + 10_000 }));
    ring.add(added);
    return added;
  };
  const long = add(0, 1000);
  const early = add(100, 5);
  const late = add(2500, 5);
  t.deepEqual([ring.take(anything), ring.take(anything), ring.take(anything)], [early, long, late]);
});

test('admission', (t) => {
  const base: AdmissionCase = {
    keyed: false,
    bytes: 1000,
    cost: 10,
    ahead: 0,
    atOnce: 2,
    outage: 0,
    timeLeft: 10_000,
    all: { jobs: 0, bytes: 0, cost: 0 },
    anonymous: { jobs: 0, bytes: 0, cost: 0 },
    maxJobs: 100,
    maxBytes: 100_000,
  };
  const backlog = (jobs: number, bytes: number) => ({ jobs, bytes, cost: 0 });
  const cases: readonly (readonly [name: string, job: Partial<AdmissionCase>, verdict: 'admitted' | number])[] = [
    ['an empty queue', {}, 'admitted'],
    ['a job that takes longer than its time', { cost: 11_000 }, 1],
    ['a queue that is served in time by two', { ahead: 15_000 }, 'admitted'],
    ['a queue that is not', { ahead: 30_000 }, 8],
    ['the same with one engine', { ahead: 15_000, atOnce: 1 }, 8],
    ['anonymous callers do not get the last fifth of the time', { ahead: 17_000 }, 1],
    ['keyed callers do', { ahead: 17_000, keyed: true }, 'admitted'],
    ['an outage counts', { ahead: 10_000, outage: 4000 }, 2],
    ['a full queue', { all: backlog(100, 0), keyed: true }, 1],
    [
      'anonymous callers do not get the last fifth of the places',
      { all: backlog(80, 0), anonymous: backlog(80, 0) },
      1,
    ],
    ['keyed callers do', { all: backlog(80, 0), anonymous: backlog(80, 0), keyed: true }, 'admitted'],
    [
      'anonymous callers get them if keyed ones do not wait',
      { all: backlog(80, 0), anonymous: backlog(70, 0) },
      'admitted',
    ],
    ['nor of the bytes', { all: backlog(2, 79_500), anonymous: backlog(2, 79_500) }, 1],
    ['the bytes of all', { all: backlog(2, 99_500), keyed: true }, 1],
  ];
  for (const [name, job, verdict] of cases) {
    t.is(refusalOf({ ...base, ...job }) ?? 'admitted', verdict, name);
  }
});

test('restarts back off, and less after service', (t) => {
  const delays = (served: boolean, lived: number, count: number): readonly number[] => {
    const all: number[] = [];
    for (let i = 0; i < count; i++) all.push(restartDelay({ served, lived }, all.at(-1) ?? 0));
    return all;
  };
  t.deepEqual(delays(true, 1000, 6), [100, 200, 400, 800, 1000, 1000]);
  t.is(delays(false, 1000, 12).at(-1), 30_000);
  t.is(restartDelay({ served: true, lived: 60_000 }, 1000), 100);
});

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
