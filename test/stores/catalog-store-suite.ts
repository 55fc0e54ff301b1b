/** The contract of a catalog store: every store passes all of it. */
import type { ExecutionContext } from 'ava';
import { createStoreBudget as budget } from '../../src/stores/budget.ts';
import { basisOf, type CatalogAdditions, digestOf } from '../../src/stores/catalog-additions.ts';
import { type CatalogRecord, type CatalogStore, UNBOUNDED } from '../../src/stores/catalog-store.ts';
import { StoreCorrupt, StoreUnavailable } from '../../src/stores/stores.ts';

/** `test` of ava, or its `serial`. */
export type DeclareTest = (title: string, run: (t: ExecutionContext) => Promise<void>) => void;

let owners = 0;
/** An owner that no other test has. */
export const newOwner = (): string => `owner-${process.pid}-${owners++}`;

/** Bounds on the number of catalogs alone. */
const atMost = (catalogs: number) => ({ ...UNBOUNDED, catalogs });

/** A record with this id. */
export const record = (id: string, choices: readonly string[] = ['yes', 'no']): CatalogRecord => ({
  id,
  model: 'minilm-l6',
  choices,
  version: '1',
  visibility: 'private',
  createdAt: '2026-01-02T03:04:05.678Z',
});

/** What an operator may have added to a catalog with these choices. */
function additionsTo(choices: readonly string[]) {
  const descriptions = { [choices[0] as string]: 'the first' };
  const figures = { log_loss: 0.5, accuracy: 0.8, ece: 0.03 };
  const state = {
    model: 'minilm-l6@r1',
    basis: basisOf(choices, descriptions),
    rung: 'bias',
    scale: 0.7,
    bias: choices.map((_, k) => k / 7),
  };
  const facts = {
    examples: choices.map(() => 9),
    before: figures,
    after: figures,
    learned_at: '2026-01-02T03:04:05.678Z',
  };
  return { descriptions, learned: { ...state, ...facts, digest: digestOf(state) } } satisfies CatalogAdditions;
}

/** Declares the suite's tests over a store that is open when they run. */
export function catalogStoreSuite(test: DeclareTest, name: string, store: () => CatalogStore): void {
  test(`${name}: what was created is read back, code unit for code unit`, async (t) => {
    const owner = newOwner();
    const choices = [
      'b',
      'a',
      '__proto__',
      'constructor',
      '10',
      ' ',
      'é',
      'e\u0301',
      '🟢',
      '[SEP]',
      '"\\\n\0',
      'x'.repeat(5_000),
    ];
    const written = { ...record('every.kind_of-choice', choices), version: '', createdAt: '2026-11-21T05:50:23.532Z' };
    const outcome = await store().create(owner, written, UNBOUNDED, budget());
    t.is(outcome.kind, 'created');
    const found = await store().read(owner, written.id, budget());
    t.deepEqual(found?.record, written);
    t.is(outcome.kind === 'created' ? outcome.stamp : undefined, found?.stamp);
    t.is(await store().stamp(owner, written.id, budget()), found?.stamp);
  });

  test(`${name}: nothing is there until it is created, and nothing afterwards`, async (t) => {
    const owner = newOwner();
    t.is(await store().read(owner, 'a', budget()), undefined);
    t.is(await store().stamp(owner, 'a', budget()), undefined);
    t.false(await store().delete(owner, 'a', budget()));
    await store().create(owner, record('a'), UNBOUNDED, budget());
    t.true(await store().delete(owner, 'a', budget()));
    t.is(await store().read(owner, 'a', budget()), undefined);
    t.is(await store().stamp(owner, 'a', budget()), undefined);
    t.false(await store().delete(owner, 'a', budget()));
    t.deepEqual(await store().list(owner, budget()), []);
  });

  test(`${name}: an id that exists is never overwritten`, async (t) => {
    const owner = newOwner();
    await store().create(owner, record('a', ['first', 'second']), UNBOUNDED, budget());
    t.deepEqual(await store().create(owner, record('a', ['other', 'choices']), UNBOUNDED, budget()), {
      kind: 'exists',
    });
    t.deepEqual((await store().read(owner, 'a', budget()))?.record.choices, ['first', 'second']);
  });

  test(`${name}: a catalog that was deleted and created again has another stamp`, async (t) => {
    const owner = newOwner();
    await store().create(owner, record('a'), UNBOUNDED, budget());
    const before = await store().stamp(owner, 'a', budget());
    await store().delete(owner, 'a', budget());
    await store().create(owner, record('a'), UNBOUNDED, budget());
    const after = await store().stamp(owner, 'a', budget());
    t.truthy(before);
    t.truthy(after);
    t.not(before, after);
  });

  test(`${name}: owners do not see each other's catalogs`, async (t) => {
    const [one, other] = [newOwner(), newOwner()];
    await store().create(one, record('shared', ['a', 'b']), UNBOUNDED, budget());
    await store().create(other, record('shared', ['c', 'd']), UNBOUNDED, budget());
    t.deepEqual((await store().read(one, 'shared', budget()))?.record.choices, ['a', 'b']);
    t.deepEqual((await store().read(other, 'shared', budget()))?.record.choices, ['c', 'd']);
    t.true(await store().delete(one, 'shared', budget()));
    t.truthy(await store().read(other, 'shared', budget()));
  });

  test(`${name}: the cap holds, counts what is there, and an existing id is told from a full owner`, async (t) => {
    const owner = newOwner();
    await store().create(owner, record('a'), atMost(2), budget());
    await store().create(owner, record('b'), atMost(2), budget());
    t.is((await store().create(owner, record('c'), atMost(2), budget())).kind, 'full');
    t.is((await store().create(owner, record('a'), atMost(2), budget())).kind, 'exists');
    t.is(await store().read(owner, 'c', budget()), undefined);
    await store().delete(owner, 'a', budget());
    t.is((await store().create(owner, record('c'), atMost(2), budget())).kind, 'created');
    t.is((await store().create(owner, record('d'), UNBOUNDED, budget())).kind, 'created');
  });

  test(`${name}: what the choices of all catalogs may weigh is bounded, and what was deleted weighs nothing`, async (t) => {
    const owner = newOwner();
    const large = (id: string) => record(id, ['x'.repeat(400), 'ü'.repeat(200)]);
    const bounds = { ...UNBOUNDED, bytes: 2_000 };
    t.is((await store().create(owner, large('a'), bounds, budget())).kind, 'created');
    t.is((await store().create(owner, large('b'), bounds, budget())).kind, 'created');
    t.deepEqual(await store().create(owner, large('c'), bounds, budget()), { kind: 'full', by: 'bytes' });
    t.is((await store().create(owner, large('a'), bounds, budget())).kind, 'exists');
    t.is((await store().create(owner, record('small'), bounds, budget())).kind, 'created');
    t.is((await store().create(newOwner(), large('c'), bounds, budget())).kind, 'created');
    await store().delete(owner, 'a', budget());
    t.is((await store().create(owner, large('c'), bounds, budget())).kind, 'created');
  });

  test(`${name}: many creates of one id at once make one catalog, the winner's`, async (t) => {
    const owner = newOwner();
    const patience = () => budget(10_000);
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        store().create(owner, record('a', [`from ${index}`, 'b']), UNBOUNDED, patience()),
      ),
    );
    t.is(outcomes.filter(({ kind }) => kind === 'created').length, 1);
    t.is(outcomes.filter(({ kind }) => kind === 'exists').length, 99);
    const winner = outcomes.findIndex(({ kind }) => kind === 'created');
    t.is((await store().read(owner, 'a', budget()))?.record.choices[0], `from ${winner}`);
  });

  test(`${name}: many creates at once do not get past the cap`, async (t) => {
    const owner = newOwner();
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, index) => store().create(owner, record(`c${index}`), atMost(7), budget(10_000))),
    );
    t.is(outcomes.filter(({ kind }) => kind === 'created').length, 7);
    t.is((await store().list(owner, budget())).length, 7);
  });

  test(`${name}: a catalog is replaced whole under a new stamp, and takes what was added to it along`, async (t) => {
    const owner = newOwner();
    await store().create(owner, record('a'), UNBOUNDED, budget());
    const first = (await store().stamp(owner, 'a', budget())) ?? '';
    const taught = { ...record('a'), additions: additionsTo(record('a').choices) };
    t.true(await store().replace(owner, first, taught, budget(), 'one\ntwo\n'));
    const found = await store().read(owner, 'a', budget());
    t.deepEqual(found?.record, taught);
    t.not(found?.stamp, first);
    t.is(await store().stamp(owner, 'a', budget()), found?.stamp);
    t.is(await store().examples(owner, 'a', budget()), 'one\ntwo\n');
    // Whoever saw the catalog as it was before changes nothing.
    t.false(await store().replace(owner, first, record('a'), budget(), ''));
    t.deepEqual((await store().read(owner, 'a', budget()))?.record, taught);
    // Examples stay unless others are given.
    const calibrated = { ...record('a'), calibrations: { 'minilm-l6@r1': 1.25 } };
    t.true(await store().replace(owner, found?.stamp ?? '', calibrated, budget()));
    t.deepEqual((await store().read(owner, 'a', budget()))?.record, calibrated);
    t.is(await store().examples(owner, 'a', budget()), 'one\ntwo\n');
    const last = (await store().stamp(owner, 'a', budget())) ?? '';
    await store().delete(owner, 'a', budget());
    t.is(await store().examples(owner, 'a', budget()), '');
    t.false(await store().replace(owner, last, taught, budget()));
    t.is(await store().read(owner, 'a', budget()), undefined);
    await store().create(owner, taught, UNBOUNDED, budget(), 'kept');
    t.deepEqual((await store().read(owner, 'a', budget()))?.record, taught);
    t.is(await store().examples(owner, 'a', budget()), 'kept');
  });

  test(`${name}: what was added and is broken is corrupt`, async (t) => {
    const owner = newOwner();
    const { learned } = additionsTo(record('a').choices);
    await store().create(
      owner,
      { ...record('a'), additions: { learned: { ...learned, scale: 3 } } },
      UNBOUNDED,
      budget(),
    );
    await t.throwsAsync(store().read(owner, 'a', budget()), { instanceOf: StoreCorrupt });
  });

  test(`${name}: lists an owner's ids in code-unit order`, async (t) => {
    const owner = newOwner();
    for (const id of ['b', 'B', 'a', '-', '10', '9', '_', '.a'])
      await store().create(owner, record(id), UNBOUNDED, budget());
    t.deepEqual(await store().list(owner, budget()), ['-', '.a', '10', '9', 'B', '_', 'a', 'b']);
    const owners = await store().owners(budget(5_000));
    t.is(owners.filter((each) => each === owner).length, 1);
    t.deepEqual(owners, [...owners].sort());
  });

  test(`${name}: a budget that is used up fails at once, and every call takes its time off`, async (t) => {
    const spent = budget(0);
    await t.throwsAsync(store().read(newOwner(), 'a', spent), { instanceOf: StoreUnavailable });
    const fresh = budget();
    await store().read(newOwner(), 'a', fresh);
    t.true(fresh.remaining < 250);
  });
}
