/** Opens the stores that the environment names for one command, whether a server is running or not. */
import { existsSync } from 'node:fs';
import { createStoreBudget, type StoreBudget } from '../stores/budget.ts';
import { createStores } from '../stores/create-stores.ts';
import { describeStore, parseStoreSettings } from '../stores/settings.ts';
import { SILENT_LOG, StoreCorrupt, type Stores, StoreWriteUnconfirmed } from '../stores/stores.ts';
import type { Terminal } from './command.ts';

/** Milliseconds that one step of a command may wait for stores: an operator can wait longer than a request. */
const PATIENCE_MS = 10_000;

/** The settings that say where the store is. */
export const STORE_ENVIRONMENT: readonly string[] = [
  'UMPIRE_DATA_DIR',
  'REDIS_URL',
  'REDIS_SENTINELS',
  'REDIS_SENTINEL_NAME',
  'REDIS_CLUSTER',
];

/** A new budget, for one step of a command. */
export function patience(): StoreBudget {
  return createStoreBudget(PATIENCE_MS);
}

/**
 * Opens the stores, does `work` with them and closes them; says on standard error which store it is. `creates`: whether
 * an embedded store is created if there is none. Otherwise that is an error: a misspelt folder must not look like a
 * store without keys. Throws Error with a message for the operator.
 */
export async function withStores<T>(
  terminal: Terminal,
  work: (stores: Stores) => Promise<T>,
  { creates = false } = {},
): Promise<T> {
  const { value, problems } = parseStoreSettings(terminal.env);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  const place = describeStore(value);
  const isNew = value.kind === 'sqlite' && !existsSync(place);
  if (isNew && !creates) {
    throw new Error(`there is no store at ${place}; UMPIRE_DATA_DIR or REDIS_URL say where the server has its own`);
  }
  terminal.err(`store: ${place}${isNew ? ' (new)' : ''}`);
  const stores = await createStores(value, SILENT_LOG);
  try {
    return await work(stores);
  } catch (error) {
    if (error instanceof StoreWriteUnconfirmed) {
      const unknown = 'whether the change was made, or will last, is unknown; look before trying again';
      throw new Error(`${error.message}: ${unknown}`, { cause: error });
    }
    throw error;
  } finally {
    await stores.close();
  }
}

/** The error of a record that cannot be read. @throws any other error. */
export function ifCorrupt(error: unknown): StoreCorrupt {
  if (error instanceof StoreCorrupt) return error;
  throw error;
}
