/** The operator's command on each kind of store, beside stores that are open. */
import test from 'ava';
import { openEmbedded, openStores } from './open-stores.ts';
import { startRedis } from './redis.ts';
import { linesOf, runUmpire } from './terminal.ts';

type Env = Readonly<Record<string, string>>;

/** Opens an embedded store and one in Redis until the end of the file's tests; `places`: these, with their settings. */
export async function openBoth() {
  const [embedded, redis] = [await openEmbedded(), await startRedis()];
  const shared = await openStores({ REDIS_URL: redis.url });
  test.after.always(async () => {
    await shared.close();
    await embedded.close();
    await redis.stop();
  });
  const places = {
    sqlite: { env: { UMPIRE_DATA_DIR: embedded.folder } as Env, stores: embedded },
    redis: { env: { REDIS_URL: redis.url } as Env, stores: shared },
  };
  return { redis, places, folder: embedded.folder };
}

/** Runs a command whose words are separated by spaces, or given one by one. */
export async function run(env: Env, args: string | readonly string[], input = '') {
  const words = typeof args === 'string' ? args.split(' ') : args;
  const { status, out, err } = await runUmpire(words, { env, input });
  return { status, out: linesOf(out), err: linesOf(err) };
}

/** The id in the line that announces a key. */
export const idIn = (lines: readonly string[]): string => /key_[0-9A-Za-z]{16}/.exec(lines.join('\n'))?.[0] ?? '';
