/** A service with an embedded store in which the test has a key. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Overrides } from '../../src/app.ts';
import { hashKey, mintKey, mintKeyId } from '../../src/domain/keys.ts';
import { createLogger } from '../../src/logger.ts';
import { createStoreBudget } from '../../src/stores/budget.ts';
import { createStores } from '../../src/stores/create-stores.ts';
import type { Stores } from '../../src/stores/stores.ts';
import { startService, type TestService } from './service.ts';

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
  const folder = mkdtempSync(join(tmpdir(), 'umpire-keys-'));
  const stores = await createStores({ kind: 'sqlite', folder }, createLogger('silent', { write: () => {} }));
  const key = mintKey();
  const record = {
    keyId: mintKeyId(),
    hash: hashKey(key),
    owner: 'acme',
    limits: {},
    createdAt: new Date().toISOString(),
  };
  await stores.keys.add(record, createStoreBudget());
  const service = await startService(env, { ...overrides, stores: change(stores) });
  return {
    ...service,
    stores,
    key,
    async stop() {
      await service.stop();
      await stores.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
