/**
 * Three replicas with a Redis behind a real nginx that has the shipped configuration: REST and gRPC on one
 * name, with TLS.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import anyTest, { type TestFn } from 'ava';
import type { Stores } from '../../src/stores/stores.ts';
import { decisionOf, grpcFault, restFault } from '../support/decision-calls.ts';
import { callGrpc, type GrpcClients, openGrpc } from '../support/grpc.ts';
import { openTls, send, type TlsCaller } from '../support/http.ts';
import { keepCalling } from '../support/keep-calling.ts';
import { issueKey } from '../support/keys.ts';
import { lightModel } from '../support/light-model.ts';
import { startProxy, type TestProxy } from '../support/nginx.ts';
import { openStores } from '../support/open-stores.ts';
import { startRedis, type TestRedis, until } from '../support/redis.ts';
import { type Replica, startReplicas } from '../support/replicas.ts';

interface Context {
  readonly redis: TestRedis;
  readonly stores: Stores;
  readonly replicas: readonly Replica[];
  readonly proxy: TestProxy;
  readonly rest: TlsCaller;
  readonly grpc: GrpcClients;
}
const test = anyTest as TestFn<Context>;

/** Requests that an anonymous address may make in an hour. */
const LIMIT = 12;

test.before(async (t) => {
  const redis = await startRedis();
  const stores = await openStores({ REDIS_URL: redis.url });
  const replicas = await startReplicas({
    REDIS_URL: redis.url,
    UMPIRE_MODELS_DIR: lightModel(),
    UMPIRE_TRUSTED_PROXIES: '127.0.0.1',
    UMPIRE_LISTEN_WHEN: 'ready',
    UMPIRE_DRAIN_DELAY: '0.5',
    UMPIRE_RATE_ANONYMOUS: `${LIMIT}/h, burst ${LIMIT}`,
  });
  const proxy = await startProxy(replicas.map(({ at }) => at));
  const { port, certificate } = proxy;
  t.context = {
    ...{ redis, stores, replicas, proxy },
    rest: openTls(port, certificate.cert),
    grpc: openGrpc(port, certificate.cert),
  };
});
test.after.always(async ({ context: { redis, stores, replicas, proxy, rest, grpc } }) => {
  rest.close();
  grpc.close();
  await proxy.stop();
  await Promise.all(replicas.map(({ server }) => server.kill()));
  await stores.close();
  await redis.stop();
});

/** How many requests of a protocol from a key's owner each replica has logged. */
const served = (replicas: readonly Replica[], protocol: string, owner: string): readonly number[] =>
  replicas.map(
    ({ server }) => server.output().match(new RegExp(`"protocol":"${protocol}".*"owner":"${owner}"`, 'g'))?.length ?? 0,
  );

test.serial('the load is spread over all three, over REST and over gRPC', async (t) => {
  const { replicas, rest, grpc, stores } = t.context;
  const { headers } = await issueKey(stores, 'spread');
  const body = JSON.stringify(decisionOf(0));
  for (let round = 0; round < 10; round++) {
    const three = [1, 2, 3].map(async () => restFault(await rest.send({ headers, body })));
    t.deepEqual(await Promise.all(three), [undefined, undefined, undefined]);
    const more = [1, 2, 3].map((turn) => grpcFault(grpc.decisions, turn, headers));
    t.deepEqual(await Promise.all(more), [undefined, undefined, undefined]);
  }
  for (const protocol of ['rest', 'grpc']) {
    // The log may be a moment behind.
    await until(() => served(replicas, protocol, 'spread').reduce((sum, count) => sum + count) === 30);
    const counts = served(replicas, protocol, 'spread');
    t.log(`${protocol}: ${counts.join(', ')}`);
    t.true(Math.min(...counts) >= 5, `${protocol}: ${counts.join(', ')}`);
  }
});

/**
 * Counts who was not refused of three times as many as are allowed. A replica that waits for Redis too long counts for
 * itself, so again then.
 */
async function admitted(call: (turn: number, attempt: number) => Promise<boolean>): Promise<number> {
  let count = 0;
  for (let attempt = 0; attempt < 4; attempt++) {
    count = 0;
    for (let turn = 0; turn < 3 * LIMIT; turn++) count += Number(await call(turn, attempt));
    if (count === LIMIT) break;
  }
  return count;
}

const forged = (turn: number) => ({ 'x-forwarded-for': `203.0.113.${turn}`, forwarded: `for=203.0.113.${turn}` });

test.serial('an address has its limit over all replicas, and forging another does not help', async (t) => {
  const { replicas, rest } = t.context;
  const paths = ['/v1/decisions', '/umpire.v1.DecisionService/CreateDecision'];
  // Limits come before the body is read, which costs least where it is wrong.
  const through = (turn: number, attempt: number) =>
    rest.send({
      path: paths[turn % 2] ?? '',
      body: '{}',
      headers: forged(turn),
      localAddress: `127.0.0.${31 + attempt}`,
    });
  t.is(await admitted(async (turn, attempt) => (await through(turn, attempt)).status !== 429), LIMIT);
  // Somebody else, at the same time.
  t.is((await rest.send({ body: '{}', localAddress: '127.0.0.40' })).status, 400);

  const direct = async (turn: number, attempt: number): Promise<boolean> => {
    const { port, host } = replicas[turn % 3] as Replica;
    const localAddress = `127.0.0.${41 + attempt}`;
    return (await send(port, { host, body: '{}', headers: forged(turn), localAddress })).status !== 429;
  };
  t.is(await admitted(direct), LIMIT);
});

test.serial('a key has its limit over all replicas and both protocols', async (t) => {
  const { rest, grpc, stores } = t.context;
  const limits = { rate: { perSecond: LIMIT / 3600, burst: LIMIT } };
  const keys = await Promise.all([0, 1, 2, 3].map((attempt) => issueKey(stores, `limited-${attempt}`, limits)));
  const call = async (turn: number, attempt: number): Promise<boolean> => {
    const headers = { ...keys[attempt]?.headers };
    if (turn % 2 === 0) return (await rest.send({ body: '{}', headers })).status !== 429;
    return (await callGrpc(grpc.decisions, 'CreateDecision', {}, { metadata: headers })).error?.code !== 8;
  };
  t.is(await admitted(call), LIMIT);
});

test.serial('all three are restarted one after the other under load, and not one request is lost', async (t) => {
  const { replicas, rest, grpc, stores } = t.context;
  const { headers } = await issueKey(stores, 'restless');
  const load = keepCalling([
    {
      name: 'REST',
      callers: 2,
      pause: 250,
      call: async (turn) => restFault(await rest.send({ headers, body: JSON.stringify(decisionOf(turn)) })),
    },
    { name: 'gRPC', callers: 2, pause: 250, call: (turn) => grpcFault(grpc.decisions, turn, headers) },
  ]);
  t.teardown(() => load.stop());
  for (const replica of replicas) t.is(await replica.restart(), 0);
  // nginx finds the last one again.
  await sleep(2_500);
  for (const { name, sent, answered, faults, longest } of await load.stop()) {
    // A machine that is busy with other things: Umpire itself says so, and nobody is left without an answer.
    const hurried = ['503 store_unavailable', '503 deadline_exceeded', '14 store_unavailable', '4 deadline_exceeded'];
    const lost = Object.entries(faults).filter(([fault]) => !hurried.includes(fault));
    t.log(`${name}: ${sent} sent, ${answered} answered, ${JSON.stringify(faults)}, longest ${Math.round(longest)} ms`);
    if (lost.length > 0) t.log(t.context.proxy.output());
    t.deepEqual(lost, [], name);
    t.true(answered > 0.9 * sent && answered > 20);
  }
  // Each of the new ones serves.
  await until(() => Math.min(...served(replicas, 'rest', 'restless')) > 0);
  t.pass();
});
