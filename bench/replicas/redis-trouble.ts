/**
 * Redis behind Sentinels and as a cluster, with a node that fails under load: how many seconds catalogs are away, and
 * how many decisions fail.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { decisionOf, restFault } from '../../test/support/decision-calls.ts';
import { send } from '../../test/support/http.ts';
import { keepCalling, type Tally } from '../../test/support/keep-calling.ts';
import { startCluster, startSentinels, type TestRedis, until } from '../../test/support/redis.ts';
import { printTable } from '../report/table.ts';
import { type Deployment, inlineCalls, printFaults, startDeployment } from './service.ts';
import { watchStillness } from './stillness.ts';

/** Something that happens to Redis. */
interface Event {
  readonly name: string;
  /** Resolves when it has begun, if that takes a while. */
  begin?(): Promise<void>;
  /** Resolves when it is over as far as Redis is concerned. */
  happen(): Promise<void>;
}

/** Makes all events happen, one after another, and prints a table. */
export async function redisTrouble(callers: number, pause: number): Promise<void> {
  const rows: (readonly string[])[] = [];
  const tallies: Tally[] = [];
  const run = async (store: Record<string, string>, events: readonly Event[]): Promise<void> => {
    const deployment = await startDeployment(store);
    try {
      await sleep(1_000);
      for (const event of events) {
        const { row, inline } = await watch(deployment, event, callers, pause);
        rows.push(row);
        tallies.push(...inline);
      }
    } finally {
      await deployment.stop();
    }
  };

  const sentinels = await startSentinels();
  const watched = { REDIS_SENTINELS: sentinels.addresses, REDIS_SENTINEL_NAME: 'umpire' };
  await run(watched, sentinelEvents(sentinels)).finally(() => sentinels.stop());

  const cluster = await startCluster({ replicas: true });
  await run({ REDIS_CLUSTER: cluster.addresses }, clusterEvents(cluster.nodes, cluster.replicas)).finally(() =>
    cluster.stop(),
  );

  printTable(
    [
      '',
      'catalogs back, s',
      'catalog calls',
      'refused meanwhile',
      'decisions sent',
      'answered',
      'failed',
      'longest ms',
      'machine still, ms',
    ],
    rows,
  );
  printFaults(tallies);
  console.log();
}

function sentinelEvents({ master, replica, sentinels }: Awaited<ReturnType<typeof startSentinels>>): readonly Event[] {
  const roleOf = async (redis: TestRedis): Promise<string> => String(await redis.command('INFO', 'replication'));
  const isMaster = (redis: TestRedis) => async () => (await roleOf(redis)).includes('role:master');
  const follows = (redis: TestRedis) => async () => (await roleOf(redis)).includes('master_link_status:up');
  return [
    {
      name: 'Sentinel: the master is killed',
      async happen() {
        await master.kill();
        await until(isMaster(replica), 30_000);
      },
    },
    {
      name: 'Sentinel: it comes back empty and is filled as a replica',
      async happen() {
        await master.start();
        await until(follows(master), 30_000);
      },
    },
    {
      name: 'Sentinel: a failover on request',
      // The Sentinel refuses until it has noticed the replica and the end of the last failover.
      async begin() {
        await until(async () => (await sentinels[0]?.command('SENTINEL', 'FAILOVER', 'umpire')) === 'OK', 60_000);
      },
      async happen() {
        await until(isMaster(master), 30_000);
        await until(follows(replica), 30_000);
      },
    },
    {
      name: 'Sentinel: the replica copies everything anew',
      async happen() {
        await replica.command('REPLICAOF', 'NO', 'ONE');
        await replica.command('FLUSHALL');
        await replica.command('REPLICAOF', '127.0.0.1', String(master.port));
        await until(follows(replica), 30_000);
      },
    },
  ];
}

function clusterEvents(nodes: readonly TestRedis[], replicas: readonly TestRedis[]): readonly Event[] {
  // The owner `acme` is in slot 11,304, which the third master has.
  const [master, replica] = [nodes[2], replicas[2]];
  if (master === undefined || replica === undefined) throw new Error('no third node');
  const info = async (redis: TestRedis): Promise<string> => String(await redis.command('INFO', 'replication'));
  return [
    {
      name: 'cluster: the master of the catalogs is killed',
      async happen() {
        await master.kill();
        await until(async () => (await info(replica)).includes('role:master'), 30_000);
      },
    },
    {
      name: 'cluster: it comes back as a replica',
      async happen() {
        await master.start();
        await until(async () => (await info(master)).includes('master_link_status:up'), 30_000);
      },
    },
    {
      name: 'cluster: a failover on request',
      async happen() {
        await master.command('CLUSTER', 'FAILOVER');
        await until(async () => (await info(master)).includes('role:master'), 30_000);
      },
    },
  ];
}

/** Milliseconds without a refusal after which catalogs count as back. */
const SETTLED = 3_000;

async function watch(
  deployment: Deployment,
  { name, begin, happen }: Event,
  callers: number,
  pause: number,
): Promise<{ readonly row: readonly string[]; readonly inline: readonly Tally[] }> {
  const load = keepCalling(inlineCalls(deployment, callers, pause));
  const { replicas, headers } = deployment;
  const seen = { calls: 0, refused: 0, lastRefusal: 0 };
  let over = false;
  // Each replica is asked directly, since all of them must be back.
  const probes = replicas.map(async ({ host, port }, index) => {
    // Each request has a connection of its own: a kept one could be closed just as it is used.
    const fresh = { ...headers, connection: 'close' };
    for (let turn = 0; !over; turn++) {
      const id = `probe-${index}-${turn}-${Math.round(performance.now())}`;
      const body = JSON.stringify({ id, model: 'minilm-l6', choices: decisionOf(0).choices });
      const answers = await Promise.all([
        send(port, { host, headers: fresh, path: '/v1/catalogs/teams' }),
        send(port, { host, headers: fresh, path: '/v1/catalogs', body }),
      ]);
      for (const answer of answers) {
        seen.calls++;
        if (answer.status === 200 || answer.status === 201) continue;
        seen.refused++;
        seen.lastRefusal = performance.now();
        if (answer.status !== 503) throw new Error(`a catalog call got ${restFault(answer)}`);
      }
      if (answers[1]?.status === 201)
        await send(port, { host, headers: fresh, method: 'DELETE', path: `/v1/catalogs/${id}` });
      await sleep(50);
    }
  });
  await sleep(500);
  await begin?.();
  const stillness = watchStillness();
  const started = performance.now();
  await happen();
  while (performance.now() - Math.max(started, seen.lastRefusal) < SETTLED) await sleep(50);
  over = true;
  await Promise.all(probes);
  const inline = await load.stop();
  const sum = (pick: (tally: Tally) => number): string =>
    String(inline.map(pick).reduce((total, one) => total + one, 0));
  const back = seen.refused === 0 ? 'never away' : ((seen.lastRefusal - started) / 1000).toFixed(1);
  return {
    inline,
    row: [
      ...[name, back, String(seen.calls), String(seen.refused)],
      ...[sum(({ sent }) => sent), sum(({ answered }) => answered), sum(({ failed }) => failed)],
      Math.max(...inline.map(({ longest }) => longest)).toFixed(0),
      stillness.look().toFixed(0),
    ],
  };
}
