/** From an Authorization header to a caller, with the embedded store behind; some tests count or cut its look-ups. */
import test from 'ava';
import { Authenticator, type Caller } from '../../src/domain/authenticate.ts';
import { DomainError } from '../../src/domain/errors.ts';
import { KeyUses } from '../../src/domain/key-uses.ts';
import { hashKey, mintKey, mintKeyId } from '../../src/domain/keys.ts';
import { createStoreBudget as budget, createStoreBudget } from '../../src/stores/budget.ts';
import { REVOKED } from '../../src/stores/key-store.ts';
import { StoreUnavailable } from '../../src/stores/stores.ts';
import { newOwner } from '../stores/catalog-store-suite.ts';
import { keyOf } from '../stores/key-store-suite.ts';
import { openEmbedded } from '../support/open-stores.ts';
import { until } from '../support/redis.ts';

const stores = await openEmbedded();
test.after.always(() => stores.close());

/** An authenticator whose clock and store are in the test's hands. */
function start({ limitBadKeys = false } = {}) {
  const state = { now: 1_800_000_000_000, wall: 1_800_000_000_000, lookups: 0, away: false };
  const authenticator = new Authenticator({
    keys: {
      ...stores.keys,
      find(hash, budget) {
        state.lookups++;
        return state.away ? Promise.reject(new StoreUnavailable('away')) : stores.keys.find(hash, budget);
      },
    },
    limitBadKeys,
    clock: () => state.now,
    wallClock: () => state.wall,
  });
  const outcome = async (authorization: string | undefined, address = '192.0.2.1'): Promise<Caller | DomainError> => {
    try {
      return await authenticator.authenticate(authorization, address, createStoreBudget());
    } catch (error) {
      if (error instanceof DomainError) return error;
      throw error;
    }
  };
  return { state, outcome, authenticator };
}

async function issue(owner = 'acme'): Promise<{ key: string; hash: string; keyId: string }> {
  const key = mintKey();
  const record = {
    keyId: mintKeyId(),
    hash: hashKey(key),
    owner,
    limits: { quota: 5 },
    createdAt: new Date().toISOString(),
  };
  await stores.keys.add(record, createStoreBudget());
  return { key, hash: record.hash, keyId: record.keyId };
}

test('no header is an anonymous caller, at once', (t) => {
  t.deepEqual(start().authenticator.authenticate(undefined, 'x', createStoreBudget()), {
    kind: 'anonymous',
    address: 'x',
  });
});

test('a key is its owner, with its limits; the scheme is read in any case, spaces around are fine', async (t) => {
  const { key, keyId } = await issue();
  const { outcome } = start();
  const expected = { kind: 'key', owner: 'acme', keyId, address: '192.0.2.1', limits: { quota: 5 } };
  for (const header of [`Bearer ${key}`, `bearer ${key}`, `BEARER   ${key} `])
    t.deepEqual(await outcome(header), expected as Caller);
});

test('junk is refused without touching the store, and never served as anonymous', async (t) => {
  const { key } = await issue();
  const { state, outcome } = start();
  for (const header of [
    '',
    ' ',
    'Bearer',
    'Bearer ',
    key,
    `Basic ${key}`,
    `Bearer${key}`,
    `Bearer ${key} ${key}`,
    `Bearer ${key},Bearer ${key}`,
    `Bearer ${key.slice(0, -1)}`,
    `Bearer ${key}x`,
    `Bearer ${key.replace('live', 'test')}`,
    `Bearer ${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`,
    `Bearer ${'a'.repeat(100_000)}`,
    `Bearer "${key}"`,
    `Bearer\t${key}`,
    `Token ${key}`,
  ]) {
    t.like(await outcome(header), { reason: 'AUTHENTICATION_REQUIRED', param: null }, header.slice(0, 80));
  }
  t.is(state.lookups, 0);
});

test('no message holds any of a key', async (t) => {
  const key = mintKey();
  const { outcome } = start();
  for (const header of [`Bearer ${key}`, `Bearer ${key}x`, `Basic ${key}`]) {
    const { message } = (await outcome(header)) as DomainError;
    t.false(message.includes(key.slice(9, 15)));
  }
});

test('a key is looked up once in 3 s, an unknown one once a second, many requests at once share it', async (t) => {
  const { key } = await issue();
  const { state, outcome } = start();
  await Promise.all(Array.from({ length: 50 }, () => outcome(`Bearer ${key}`)));
  t.is(state.lookups, 1);
  state.now += 2_999;
  await outcome(`Bearer ${key}`);
  t.is(state.lookups, 1);
  state.now += 1;
  await outcome(`Bearer ${key}`);
  t.is(state.lookups, 2);
  const unknown = `Bearer ${mintKey()}`;
  t.like(await outcome(unknown), { reason: 'AUTHENTICATION_REQUIRED' });
  await outcome(unknown);
  t.is(state.lookups, 3);
  state.now += 1_000;
  await outcome(unknown);
  t.is(state.lookups, 4);
});

test('a key in the cache is answered without a promise', async (t) => {
  const { key } = await issue();
  const { authenticator, outcome } = start();
  await outcome(`Bearer ${key}`);
  t.false(authenticator.authenticate(`Bearer ${key}`, 'x', createStoreBudget()) instanceof Promise);
});

test('a revoked key is refused within 3 s, one in its grace time until that ends', async (t) => {
  const [revoked, rotated] = [await issue(), await issue()];
  const { state, outcome } = start();
  await outcome(`Bearer ${revoked.key}`);
  await stores.keys.end(revoked.hash, REVOKED, 'revocation', createStoreBudget());
  await stores.keys.end(rotated.hash, state.wall + 10_000, 'rotation', createStoreBudget());
  state.now += 3_000;
  state.wall += 3_000;
  t.like(await outcome(`Bearer ${revoked.key}`), { reason: 'AUTHENTICATION_REQUIRED' });
  t.like(await outcome(`Bearer ${rotated.key}`), { kind: 'key' });
  state.wall += 6_999;
  t.like(await outcome(`Bearer ${rotated.key}`), { kind: 'key' });
  state.wall += 1;
  t.like(await outcome(`Bearer ${rotated.key}`), { reason: 'AUTHENTICATION_REQUIRED' });
});

test('a clock that is set back neither keeps a revoked key alive nor brings it back', async (t) => {
  const { key, hash } = await issue();
  const { state, outcome } = start();
  t.like(await outcome(`Bearer ${key}`), { kind: 'key' });
  await stores.keys.end(hash, REVOKED, 'revocation', createStoreBudget());
  state.wall -= 3_600_000;
  state.now += 3_000;
  t.like(await outcome(`Bearer ${key}`), { reason: 'AUTHENTICATION_REQUIRED' });
  state.wall = 1;
  state.now += 3_000;
  t.like(await outcome(`Bearer ${key}`), { reason: 'AUTHENTICATION_REQUIRED' });
});

test('while the store is away a key of the last ten minutes is believed, one never seen is 503', async (t) => {
  const [seen, unseen] = [await issue(), await issue()];
  const { state, outcome } = start();
  await outcome(`Bearer ${seen.key}`);
  state.away = true;
  t.like(await outcome(`Bearer ${unseen.key}`), { reason: 'STORE_UNAVAILABLE', retryAfter: 1 });
  state.now += 599_000;
  t.like(await outcome(`Bearer ${seen.key}`), { kind: 'key' });
  const { lookups } = state;
  t.like(await outcome(`Bearer ${seen.key}`), { kind: 'key' });
  t.is(state.lookups, lookups, 'the store is not asked for every request');
  state.now += 1_000;
  t.like(await outcome(`Bearer ${seen.key}`), { reason: 'STORE_UNAVAILABLE' });
  state.away = false;
  t.like(await outcome(`Bearer ${seen.key}`), { kind: 'key' });
  t.like(await outcome(`Bearer ${unseen.key}`), { kind: 'key' });
});

test('bad keys of one address are limited; a good one from there, and other addresses, are not', async (t) => {
  const { key } = await issue();
  const { state, outcome } = start({ limitBadKeys: true });
  for (let count = 0; count < 60; count++) {
    const header = count % 2 === 0 ? 'Bearer junk' : `Bearer ${mintKey()}`;
    t.like(await outcome(header), { reason: 'AUTHENTICATION_REQUIRED' });
  }
  const refused = await outcome('Bearer junk');
  t.like(refused, { reason: 'RATE_LIMIT_EXCEEDED', retryAfter: 1 });
  t.like(await outcome(`Bearer ${mintKey()}`), { reason: 'RATE_LIMIT_EXCEEDED' });
  t.like(await outcome(`Bearer ${key}`), { kind: 'key' });
  t.like(await outcome(undefined), { kind: 'anonymous' });
  t.like(await outcome('Bearer junk', '192.0.2.2'), { reason: 'AUTHENTICATION_REQUIRED' });
  state.now += 1_000;
  t.like(await outcome('Bearer junk'), { reason: 'AUTHENTICATION_REQUIRED' });
  t.like(await outcome('Bearer junk'), { reason: 'RATE_LIMIT_EXCEEDED' });
});

test('junk that passes the check sum never pushes a good key out, and hardly makes the store work', async (t) => {
  const { key } = await issue();
  const { state, outcome } = start({ limitBadKeys: true });
  t.like(await outcome(`Bearer ${key}`), { kind: 'key' });
  const junk = Array.from({ length: 60_000 }, () => `Bearer ${mintKey()}`);
  const answers = await Promise.all(junk.map((header) => outcome(header, '198.51.100.7')));
  t.true(answers.every((answer) => answer instanceof DomainError));
  t.true(state.lookups <= 1 + 256, `${state.lookups} look-ups`);
  state.now += 1_000;
  await Promise.all(junk.map((header) => outcome(header, '198.51.100.7')));
  t.true(state.lookups <= 1 + 256 + 10, `${state.lookups} look-ups after another second`);
  state.away = true;
  state.now += 5_000;
  t.like(await outcome(`Bearer ${key}`), { kind: 'key' }, 'it is still believed');
});

test('many good keys behind one address are all looked up, however fast they come', async (t) => {
  const keys = await Promise.all(Array.from({ length: 600 }, () => issue()));
  const { state, outcome } = start({ limitBadKeys: true });
  for (const { key } of keys) t.like(await outcome(`Bearer ${key}`), { kind: 'key' });
  t.is(state.lookups, 600);
});

test('a key that is looked up was used; it is written together, and at the end', async (t) => {
  const [one, ended] = [keyOf(newOwner()), keyOf(newOwner(), { endsAt: 1_000, endedBy: 'revocation' })];
  for (const key of [one, ended]) await stores.keys.add(key, budget());
  let now = 5_000;
  let writes = 0;
  const counted = {
    ...stores.keys,
    used(...args: Parameters<typeof stores.keys.used>) {
      writes++;
      return stores.keys.used(...args);
    },
  };
  const keys = new KeyUses(counted, { interval: 3_600_000, clock: () => now });
  for (const _ of Array.from({ length: 20 })) await keys.find(one.hash, budget());
  await keys.find(ended.hash, budget());
  await keys.find('0'.repeat(64), budget());
  now = 6_000;
  await keys.find(one.hash, budget());
  t.is((await stores.keys.find(one.hash, budget()))?.lastUsedAt, undefined);
  await keys.close();
  t.is(writes, 1);
  t.is((await stores.keys.find(one.hash, budget()))?.lastUsedAt, 6_000);
  t.is((await stores.keys.find(ended.hash, budget()))?.lastUsedAt, undefined);
});

test('uses are written from time to time, and a store that is away hurts nobody', async (t) => {
  const key = keyOf(newOwner());
  await stores.keys.add(key, budget());
  let away = true;
  const store = {
    ...stores.keys,
    used: (...args: Parameters<typeof stores.keys.used>) =>
      away ? Promise.reject(new StoreUnavailable('away')) : stores.keys.used(...args),
  };
  const keys = new KeyUses(store, { interval: 20, clock: () => 7_000 });
  await keys.find(key.hash, budget());
  await new Promise((resolve) => setTimeout(resolve, 100));
  away = false;
  await keys.find(key.hash, budget());
  await until(async () => (await stores.keys.find(key.hash, budget()))?.lastUsedAt === 7_000);
  await keys.close();
  t.pass();
});
