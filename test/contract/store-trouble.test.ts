/**
 * Redis in trouble, one row after the other: inline decisions go on, catalog calls are 503 soon and never 401, and all
 * is well again soon after Redis is, without a restart. The measured times are in each test's log.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import type { Stores } from '../../src/stores/stores.ts';
import { type Answer, isError, VALID_BODY } from '../support/answers.ts';
import { decide, send } from '../support/http.ts';
import { type IssuedKey, issueKey } from '../support/keys.ts';
import { openStores } from '../support/open-stores.ts';
import { goByOwnTime } from '../support/own-time.ts';
import { startRedis, type TestRedis, until } from '../support/redis.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { scriptedService, startService, type TestService } from '../support/service.ts';

interface Context {
  readonly redis: TestRedis;
  readonly stores: Stores;
  readonly service: TestService;
  readonly key: IssuedKey;
}
const test = anyTest as TestFn<Context>;
goByOwnTime();

const DRAFT = { model: 'minilm-l6', choices: ['a', 'b'] };
let ids = 0;

test.before(async (t) => {
  const redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always', '--aof-use-rdb-preamble', 'yes']);
  const stores = await openStores({ REDIS_URL: redis.url });
  const key = await issueKey(stores, 'acme');
  // With limits, so that every decision has something to ask of Redis.
  const limits = { UMPIRE_RATE_ANONYMOUS: '10000/s', UMPIRE_RATE_KEY: '10000/s', UMPIRE_CONCURRENCY_KEY: '100' };
  const service = await startService({ REDIS_URL: redis.url, ...limits }, { engine: createScriptedEngine() });
  t.context = { redis, stores, service, key };
  await create(t.context, 'kept');
});
test.after.always(async ({ context: { redis, stores, service } }) => {
  await service.stop();
  await stores.close();
  await redis.stop();
});

const create = ({ service, key }: Context, id: string) =>
  send(service.port, { path: '/v1/catalogs', headers: key.headers, body: JSON.stringify({ ...DRAFT, id }) });
const read = ({ service, key }: Context, id = 'kept') =>
  send(service.port, { path: `/v1/catalogs/${id}`, headers: key.headers });
const inline = ({ service, key }: Context, keyed: boolean) =>
  decide(service.port, VALID_BODY, keyed ? key.headers : {});

async function timed(work: Promise<Answer>): Promise<Answer & { readonly took: number }> {
  const started = performance.now();
  return { ...(await work), took: performance.now() - started };
}

/** What every trouble must look like from outside, for a while. `readable`: reads go on, writes do not. */
async function troubled(t: ExecutionContext<Context>, { readable = false } = {}): Promise<void> {
  const { context } = t;
  const slowest = { inline: 0, catalog: 0 };
  const stranger = await issueKey({ keys: { ...context.stores.keys, add: async () => true } }, 'stranger');
  const until = performance.now() + 1_200;
  for (let round = 0; performance.now() < until; round++) {
    for (const keyed of [true, false]) {
      const decision = await timed(inline(context, keyed));
      t.is(decision.status, 200, decision.text);
      slowest.inline = Math.max(slowest.inline, decision.took);
    }
    const calls = [timed(create(context, `trouble-${ids++}`)), ...(readable ? [] : [timed(read(context))])];
    for (const answer of await Promise.all(calls)) {
      const code = answer.text.includes('store_write_unconfirmed') ? 'store_write_unconfirmed' : 'store_unavailable';
      isError(t, answer, { status: 503, code, param: null });
      t.truthy(answer.headers['retry-after']);
      slowest.catalog = Math.max(slowest.catalog, answer.took);
    }
    // A steady trickle shows what a flood would.
    await sleep(5);
    if (readable) t.is((await read(context)).status, 200);
    else if (round % 10 === 0) {
      const unseen = await decide(context.service.port, VALID_BODY, stranger.headers);
      isError(t, unseen, { status: 503, code: 'store_unavailable', param: null }, 'a key never seen');
    }
  }
  t.log(
    `slowest inline decision ${Math.round(slowest.inline)} ms, slowest catalog answer ${Math.round(slowest.catalog)} ms`,
  );
  // The bounds are 250 and 350 ms, and the work comes on top.
  t.true(slowest.inline < 700 && slowest.catalog < 700);
}

async function recovered(t: ExecutionContext<Context>): Promise<void> {
  const { context } = t;
  const took = await until(async () => {
    const answers = [await read(context), await create(context, `after-${ids++}`)];
    return answers[0]?.status === 200 && answers[1]?.status === 201;
  }, 15_000);
  t.log(`catalogs again after ${Math.round(took)} ms`);
  t.true(took < 6_000);
  for (const keyed of [true, false]) t.is((await inline(context, keyed)).status, 200);
}

test.serial('frozen', async (t) => {
  t.context.redis.freeze();
  await troubled(t);
  t.context.redis.thaw();
  await recovered(t);
});

test.serial('killed, and started again', async (t) => {
  await t.context.redis.kill();
  await troubled(t);
  await t.context.redis.start();
  await recovered(t);
});

test.serial('loading its data', async (t) => {
  const { redis } = t.context;
  await redis.command('EVAL', "for i = 1, 3000 do redis.call('SET', 'ballast:' .. i, string.rep('x', 100)) end", '0');
  await redis.command('BGREWRITEAOF');
  await until(async () =>
    /aof_rewrite_in_progress:0[\s\S]*aof_rewrite_scheduled:0/.test(String(await redis.command('INFO', 'persistence'))),
  );
  await redis.kill();
  await redis.start(['--key-load-delay', '800', '--loading-process-events-interval-bytes', '1024']);
  t.regex(await redis.command('GET', 'ballast:1').then(String, String), /LOADING/);
  await troubled(t);
  await until(async () => (await redis.command('GET', 'ballast:1')) !== undefined, 20_000);
  await recovered(t);
});

test.serial('read-only: a replica of something else now', async (t) => {
  const { redis } = t.context;
  await redis.command('REPLICAOF', '127.0.0.1', '1');
  await troubled(t);
  await redis.command('REPLICAOF', 'NO', 'ONE');
  await recovered(t);
});

test.serial('out of memory: what can be read is read, and deleting makes room', async (t) => {
  const { redis, service, key } = t.context;
  await create(t.context, 'room');
  t.teardown(() => redis.command('CONFIG', 'SET', 'maxmemory', '0'));
  await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
  await redis.command('CONFIG', 'SET', 'maxmemory', '1');
  await troubled(t, { readable: true });
  const deleted = await send(service.port, { method: 'DELETE', path: '/v1/catalogs/room', headers: key.headers });
  t.is(deleted.status, 204);
  await redis.command('CONFIG', 'SET', 'maxmemory', '0');
  await recovered(t);
});

test.serial('away from the start: inline decisions are served, catalogs once it is there', async (t) => {
  const { redis, key } = t.context;
  await redis.kill();
  const service = await scriptedService(t, { REDIS_URL: redis.url });
  t.is((await decide(service.port, VALID_BODY)).status, 200);
  const own = { ...t.context, service };
  isError(t, await read(own), { status: 503, code: 'store_unavailable', param: null });
  await until(() => service.log.some(({ cause }) => /^Redis is away \(.*ECONNREFUSED/.test(String(cause))));
  t.is((await send(service.port, { path: '/health/ready' })).status, 200);
  await redis.start();
  const took = await until(
    async () => (await send(service.port, { path: '/v1/catalogs/kept', headers: key.headers })).status === 200,
  );
  t.log(`catalogs after ${Math.round(took)} ms`);
});
