/**
 * Real Redis servers for tests: each on a free port, in a folder of its own, ended with the test's
 * process at the latest.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import { listen } from './listening.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** One redis-server process. */
export interface TestRedis {
  readonly port: number;
  readonly url: string;
  /** Its log, for when a test fails. */
  readonly output: () => string;
  /** Sends a command on a connection of its own; the reply, or the error as a rejection. */
  command(...args: string[]): Promise<unknown>;
  /** SIGSTOP and SIGCONT. */
  freeze(): void;
  thaw(): void;
  /** kill -9. Resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts it again on the same port and data. Resolves once it accepts connections, loaded or not. */
  start(extra?: readonly string[]): Promise<void>;
  /** Ends it for good. */
  stop(): Promise<void>;
}

const children = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

const SOCKET = { reconnectStrategy: false, connectTimeout: 1_000 } as const;
/** Each client that is no duplicate has a class of its own, which takes longer to make than a command. */
const PATTERN = createClient({ socket: { ...SOCKET } });

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server);
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * Starts a server. `options` are redis-server's own, such as `--appendonly yes`. `file`: a configuration that
 * it may rewrite.
 */
export async function startRedis(options: readonly string[] = [], file?: string): Promise<TestRedis> {
  const folder = temporaryFolder();
  const port = await freePort();
  const shared = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
  if (file !== undefined) writeFileSync(join(folder, 'redis.conf'), file);
  const config = file === undefined ? [] : [join(folder, 'redis.conf')];
  let child: ChildProcess | undefined;
  let output = '';

  const redis: TestRedis = {
    port,
    url: `redis://127.0.0.1:${port}`,
    output: () => output,
    async command(...args) {
      const client = PATTERN.duplicate({ url: redis.url, socket: { ...SOCKET } });
      client.on('error', () => {});
      await client.connect();
      try {
        return await client.sendCommand(args);
      } finally {
        client.destroy();
      }
    },
    freeze: () => child?.kill('SIGSTOP'),
    thaw: () => child?.kill('SIGCONT'),
    async kill() {
      const ended = child;
      child = undefined;
      if (ended === undefined) return;
      const gone = once(ended, 'exit');
      ended.kill('SIGKILL');
      await gone;
      children.delete(ended);
    },
    async start(extra = []) {
      const started = spawn('redis-server', [...config, ...shared, ...options, ...extra], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      child = started;
      children.add(started);
      started.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
      started.on('error', (error) => {
        output += String(error);
      });
      const deadline = performance.now() + 10_000;
      while (!(await answers(redis))) {
        if (started.exitCode !== null || performance.now() > deadline)
          throw new Error(`redis-server did not start:\n${output}`);
        await sleep(10);
      }
    },
    stop: () => redis.kill(),
  };
  await redis.start();
  return redis;
}

async function answers(redis: TestRedis): Promise<boolean> {
  try {
    await redis.command('PING');
    return true;
  } catch (error) {
    return error instanceof Error && error.message.startsWith('LOADING');
  }
}

/** A master, a replica of it, and three Sentinels that watch over them under the name `umpire`. */
export interface TestSentinels {
  readonly master: TestRedis;
  readonly replica: TestRedis;
  readonly sentinels: readonly TestRedis[];
  /** For REDIS_SENTINELS. */
  readonly addresses: string;
  stop(): Promise<void>;
}

/** Starts them; a silent master is replaced after about a second. */
export async function startSentinels(): Promise<TestSentinels> {
  const master = await startRedis();
  const replica = await startRedis([
    '--replicaof',
    '127.0.0.1',
    String(master.port),
    '--repl-diskless-sync-delay',
    '0',
  ]);
  const sentinels = await Promise.all(
    [1, 2, 3].map(() =>
      startRedis(
        ['--sentinel'],
        [
          `sentinel monitor umpire 127.0.0.1 ${master.port} 2`,
          'sentinel down-after-milliseconds umpire 800',
          'sentinel failover-timeout umpire 3000',
          '',
        ].join('\n'),
      ),
    ),
  );
  const all = [master, replica, ...sentinels];
  // The Sentinels know the replica and each other, and the replica has what the master has.
  await until(async () => {
    const [replication, ...infos] = await Promise.all([
      replica.command('INFO', 'replication'),
      ...sentinels.map((sentinel) => sentinel.command('INFO', 'sentinel')),
    ]);
    return (
      String(replication).includes('master_link_status:up') &&
      infos.every((info) => /slaves=1,sentinels=3/.test(String(info)))
    );
  }, 20_000);
  return {
    master,
    replica,
    sentinels,
    addresses: sentinels.map(({ port }) => `127.0.0.1:${port}`).join(','),
    async stop() {
      await Promise.all(all.map((redis) => redis.stop()));
    },
  };
}

/** A cluster of three masters that has all slots. */
export interface TestCluster {
  readonly nodes: readonly TestRedis[];
  /** One of each node, if they were asked for. */
  readonly replicas: readonly TestRedis[];
  /** For REDIS_CLUSTER. */
  readonly addresses: string;
  stop(): Promise<void>;
}

/** Starts one; with `replicas`, each master has one that takes its place about two seconds after it was lost. */
export async function startCluster({ replicas: wanted = false } = {}): Promise<TestCluster> {
  const all = await Promise.all(
    Array.from({ length: wanted ? 6 : 3 }, async () =>
      // The bus is on the port + 10000 unless it is told otherwise, and that may be past the last port.
      startRedis([
        '--cluster-enabled',
        'yes',
        '--cluster-node-timeout',
        '2000',
        '--cluster-port',
        String(await freePort()),
        '--repl-diskless-sync-delay',
        '0',
      ]),
    ),
  );
  const [nodes, replicas] = [all.slice(0, 3), all.slice(3)];
  const [first, ...others] = nodes;
  if (first === undefined) throw new Error('no node');
  const third = Math.ceil(16_384 / 3);
  for (const [index, node] of nodes.entries()) {
    const last = Math.min((index + 1) * third, 16_384) - 1;
    await node.command('CLUSTER', 'ADDSLOTSRANGE', String(index * third), String(last));
    await node.command('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
  }
  for (const node of [...others, ...replicas]) {
    const info = String(await node.command('CONFIG', 'GET', 'cluster-port').then(settingOf));
    await first.command('CLUSTER', 'MEET', '127.0.0.1', String(node.port), info);
  }
  await until(async () => {
    const states = await Promise.all(all.map((node) => node.command('CLUSTER', 'INFO')));
    return states.every(
      (state) => /cluster_state:ok/.test(String(state)) && String(state).includes(`cluster_known_nodes:${all.length}`),
    );
  }, 20_000);
  for (const [index, replica] of replicas.entries()) {
    await replica.command('CLUSTER', 'REPLICATE', String(await nodes[index]?.command('CLUSTER', 'MYID')));
    await until(async () => /master_link_status:up/.test(String(await replica.command('INFO', 'replication'))), 20_000);
  }
  return {
    nodes,
    replicas,
    addresses: nodes.map(({ port }) => `127.0.0.1:${port}`).join(','),
    async stop() {
      await Promise.all(all.map((node) => node.stop()));
    },
  };
}

/** The value in a reply to CONFIG GET of one setting. */
function settingOf(reply: unknown): unknown {
  if (reply instanceof Map) return [...reply.values()][0];
  return Array.isArray(reply) ? reply[1] : Object.values(reply as object)[0];
}

/**
 * Waits until a condition holds, asked every `pause` milliseconds; a rejection counts as not yet. Resolves to the
 * milliseconds it took.
 */
export async function until(
  condition: () => Promise<boolean> | boolean,
  milliseconds = 10_000,
  pause = 10,
): Promise<number> {
  const started = performance.now();
  for (;;) {
    if (await Promise.resolve(condition()).catch(() => false)) return performance.now() - started;
    if (performance.now() - started > milliseconds)
      throw new Error(`it did not come true within ${milliseconds} ms: ${condition}`);
    await sleep(pause);
  }
}
