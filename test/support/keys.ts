/** Keys for tests, made as the operator's command makes them, and services in which the test has one. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import type { Overrides } from '../../src/app.ts';
import { hashKey, mintKey, mintKeyId } from '../../src/domain/keys.ts';
import { createStoreBudget } from '../../src/stores/budget.ts';
import type { KeyLimits } from '../../src/stores/key-store.ts';
import type { Stores } from '../../src/stores/stores.ts';
import { openEmbedded } from './open-stores.ts';
import { createScriptedEngine, type ScriptedEngine } from './scripted-engine.ts';
import { startService, type TestService } from './service.ts';

/** A live key of an owner, and the header that carries it. */
export interface IssuedKey {
  readonly key: string;
  readonly hash: string;
  readonly keyId: string;
  readonly headers: { readonly authorization: string };
}

/** Adds a key to the stores. */
export async function issueKey(
  { keys }: Pick<Stores, 'keys'>,
  owner: string,
  limits: KeyLimits = {},
): Promise<IssuedKey> {
  const key = mintKey();
  const record = { keyId: mintKeyId(), hash: hashKey(key), owner, limits, createdAt: new Date().toISOString() };
  // On a busy machine a call may run out of time. A write that was not confirmed may have been made: then the hash
  // is known already.
  for (let tries = 0; ; tries++) {
    try {
      await keys.add(record, createStoreBudget(5_000));
      break;
    } catch (error) {
      if (tries === 50) throw error;
      await sleep(100);
    }
  }
  return { key, hash: record.hash, keyId: record.keyId, headers: { authorization: `Bearer ${key}` } };
}

/** A service, its stores and a live key of the owner `acme`. */
export interface KeyedService extends TestService {
  readonly stores: Stores;
  readonly key: string;
}

/** Starts one; `change` may put something in front of the stores that the service uses. */
export async function startKeyedService(
  env: Record<string, string>,
  overrides: Overrides,
  change: (stores: Stores) => Stores = (stores) => stores,
): Promise<KeyedService> {
  const stores = await openEmbedded();
  const { key } = await issueKey(stores, 'acme');
  const service = await startService(env, { ...overrides, stores: change(stores) });
  return {
    ...service,
    stores,
    key,
    async stop() {
      await service.stop();
      await stores.close();
    },
  };
}

/** Starts one whose engine answers by a script, and ends it with the test. */
export async function keyedService(
  t: ExecutionContext,
  env: Record<string, string> = {},
  engine: ScriptedEngine = createScriptedEngine(),
): Promise<KeyedService> {
  const service = await startKeyedService(env, { engine });
  t.teardown(service.stop);
  return service;
}
