/** The contract of a key store: every store passes all of it. */
import { hashKey, mintKey, mintKeyId } from '../../src/domain/keys.ts';
import { createStoreBudget as budget } from '../../src/stores/budget.ts';
import type { KeyEnd, KeyRecord, KeyStore } from '../../src/stores/key-store.ts';
import { type DeclareTest, newOwner } from './catalog-store-suite.ts';

/** A record of a fresh key. */
export const keyOf = (owner: string, rest: Partial<KeyRecord> = {}): KeyRecord => ({
  keyId: mintKeyId(),
  hash: hashKey(mintKey()),
  owner,
  limits: {},
  createdAt: new Date().toISOString(),
  ...rest,
});

/** Declares the suite's tests over a store that is open when they run. */
export function keyStoreSuite(test: DeclareTest, name: string, store: () => KeyStore): void {
  test(`${name}: a key is found by its hash as it was added`, async (t) => {
    const limits = { rate: { perSecond: 0.5, burst: 3 }, concurrency: 'off', quota: 100 } as const;
    for (const key of [
      keyOf(newOwner()),
      keyOf(newOwner(), { limits }),
      keyOf(newOwner(), { endsAt: 1_800_000_000_000, endedBy: 'rotation' }),
      keyOf(newOwner(), { label: 'the crawler, prod é', lastUsedAt: 1_700_000_000_000 }),
    ]) {
      t.true(await store().add(key, budget()));
      t.deepEqual(await store().find(key.hash, budget()), key);
    }
    t.is(await store().find(hashKey('no such key'), budget()), undefined);
  });

  test(`${name}: a hash is added once`, async (t) => {
    const key = keyOf(newOwner());
    t.true(await store().add(key, budget()));
    t.false(await store().add({ ...key, keyId: mintKeyId(), owner: 'thief' }, budget()));
    t.is((await store().find(key.hash, budget()))?.owner, key.owner);
  });

  test(`${name}: an end is set once and only ever moves closer`, async (t) => {
    const key = keyOf(newOwner());
    await store().add(key, budget());
    const endAfter = async (endsAt: number, endedBy: KeyEnd) => {
      t.true(await store().end(key.hash, endsAt, endedBy, budget()));
      const found = await store().find(key.hash, budget());
      return [found?.endsAt, found?.endedBy];
    };
    t.deepEqual(await endAfter(2_000_000_000_000, 'rotation'), [2_000_000_000_000, 'rotation']);
    t.deepEqual(await endAfter(1_900_000_000_000, 'revocation'), [1_900_000_000_000, 'revocation']);
    t.deepEqual(await endAfter(2_100_000_000_000, 'rotation'), [1_900_000_000_000, 'revocation']);
    t.false(await store().end(hashKey('no such key'), 1, 'revocation', budget()));
  });

  test(`${name}: the last use of keys is noted, and only ever moves on`, async (t) => {
    const [one, other] = [keyOf(newOwner()), keyOf(newOwner())];
    for (const key of [one, other]) await store().add(key, budget());
    const unknown = hashKey('no such key');
    await store().used(
      new Map([
        [one.hash, 2_000],
        [other.hash, 5_000],
        [unknown, 1],
      ]),
      budget(),
    );
    await store().used(
      new Map([
        [one.hash, 1_000],
        [other.hash, 6_000],
      ]),
      budget(),
    );
    await store().used(new Map(), budget());
    t.deepEqual(await store().find(one.hash, budget()), { ...one, lastUsedAt: 2_000 });
    t.deepEqual(await store().find(other.hash, budget()), { ...other, lastUsedAt: 6_000 });
    t.is(await store().find(unknown, budget()), undefined);
  });

  test(`${name}: a last use that a clock years ahead noted gives way to the next one`, async (t) => {
    const key = keyOf(newOwner(), { lastUsedAt: 2_100_000_000_000 });
    await store().add(key, budget());
    await store().used(new Map([[key.hash, 1_800_000_000_000]]), budget());
    t.is((await store().find(key.hash, budget()))?.lastUsedAt, 1_800_000_000_000);
  });

  test(`${name}: lists every key, by owner and age`, async (t) => {
    const owner = newOwner();
    const keys = [3, 1, 2].map((second) => keyOf(owner, { createdAt: `2026-01-01T00:00:0${second}.000Z` }));
    for (const key of keys) await store().add(key, budget());
    const mine = (await store().list(budget(5_000))).records.filter((key) => key.owner === owner);
    t.deepEqual(mine, [keys[1], keys[2], keys[0]] as KeyRecord[]);
  });
}
