/** The stores over Redis. */
import type { Stores } from '../create-stores.ts';
import { StoreUnavailable } from '../errors.ts';
import type { StoreLog } from '../log.ts';
import type { RedisSettings } from '../settings.ts';

/** Not there yet. */
export async function createRedisStores(_settings: RedisSettings, _log: StoreLog): Promise<Stores> {
  throw new StoreUnavailable('Redis is not supported yet');
}
