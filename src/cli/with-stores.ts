/** Opens the stores that the environment names for one command, beside a running server or without one. */
import { createStoreBudget, type StoreBudget } from '../stores/budget.ts';
import { createStores, type Stores } from '../stores/create-stores.ts';
import { StoreWriteUnconfirmed } from '../stores/errors.ts';
import { silentLog } from '../stores/log.ts';
import { parseStoreSettings } from '../stores/settings.ts';
import type { Terminal } from './command.ts';

/** An operator can wait longer than a request. */
const PATIENCE_MS = 10_000;

/** A budget for one step of a command. */
export function patience(): StoreBudget {
  return createStoreBudget(PATIENCE_MS);
}

/** Does work on the stores and closes them. Throws Error with a message for the operator. */
export async function withStores<T>(terminal: Terminal, work: (stores: Stores) => Promise<T>): Promise<T> {
  const { value, problems } = parseStoreSettings(terminal.env);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  const stores = await createStores(value, silentLog);
  try {
    return await work(stores);
  } catch (error) {
    if (error instanceof StoreWriteUnconfirmed) {
      throw new Error(
        `${error.message}: whether the change was made, or will last, is unknown; look before trying again`,
        {
          cause: error,
        },
      );
    }
    throw error;
  } finally {
    await stores.close();
  }
}
