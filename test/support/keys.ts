/** A service with an embedded store in which the test has a key. */
import type { Overrides } from '../../src/app.ts';
import type { Stores } from '../../src/stores/stores.ts';
import { issueKey } from './issue-key.ts';
import { openEmbedded } from './open-stores.ts';
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
