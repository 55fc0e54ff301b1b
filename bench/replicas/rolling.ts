/** Limits over all replicas, how the load spreads over them, and a rolling restart under load. */
import { setTimeout as sleep } from 'node:timers/promises';
import { callGrpc } from '../../test/support/grpc.ts';
import { send } from '../../test/support/http.ts';
import { keepCalling } from '../../test/support/keep-calling.ts';
import { startRedis } from '../../test/support/redis.ts';
import type { Replica } from '../../test/support/replicas.ts';
import { printTable } from '../report/table.ts';
import {
  catalogCalls,
  type Deployment,
  inlineCalls,
  printFaults,
  startDeployment,
  TALLY_HEAD,
  tallyRow,
} from './service.ts';
import { watchStillness } from './stillness.ts';

/** Measures limits, spread and restarts, and prints their tables. */
export async function rolling(rounds: number, callers: number, pause: number): Promise<void> {
  const redis = await startRedis();
  const store = { REDIS_URL: redis.url };
  try {
    const limited = await startDeployment(store, { env: { UMPIRE_RATE_ANONYMOUS: `${ALLOWED}/h, burst ${ALLOWED}` } });
    try {
      await limits(limited);
    } finally {
      await limited.stop();
    }
    await redis.command('FLUSHALL');
    const deployment = await startDeployment(store);
    try {
      await restarts(deployment, rounds, callers, pause);
    } finally {
      await deployment.stop();
    }
  } finally {
    await redis.stop();
  }
}

/** Requests that a limited caller may make: a burst whose rate refills one a minute. */
const ALLOWED = 60;

async function limits({ replicas, rest, grpc, limitedKey }: Deployment): Promise<void> {
  const headers = await limitedKey(ALLOWED / 3600, ALLOWED);
  const forged = (turn: number) => ({ 'x-forwarded-for': `203.0.113.${turn}` });
  // Limits apply before the body is read, so the cheapest body serves: a wrong one.
  const kinds: Readonly<Record<string, (turn: number) => Promise<boolean>>> = {
    'an address, through nginx': async () =>
      (await rest.send({ body: '{}', localAddress: '127.0.0.31' })).status !== 429,
    'an address that forges X-Forwarded-For, through nginx': async (turn) =>
      (await rest.send({ body: '{}', headers: forged(turn), localAddress: '127.0.0.32' })).status !== 429,
    'an address that forges X-Forwarded-For, to the replicas by turns': async (turn) => {
      const { host, port } = replicas[turn % 3] as Replica;
      return (await send(port, { host, body: '{}', headers: forged(turn), localAddress: '127.0.0.33' })).status !== 429;
    },
    'a key, REST and gRPC by turns, through nginx': async (turn) => {
      if (turn % 2 === 0) return (await rest.send({ body: '{}', headers })).status !== 429;
      return (await callGrpc(grpc.decisions, 'CreateDecision', {}, { metadata: headers })).error?.code !== 8;
    },
  };
  const rows: string[][] = [];
  for (const [name, call] of Object.entries(kinds)) {
    let admitted = 0;
    for (let turn = 0; turn < 3 * ALLOWED; turn++) admitted += Number(await call(turn));
    rows.push([name, String(3 * ALLOWED), String(ALLOWED), String(admitted)]);
  }
  printTable(['limits over three replicas', 'sent', 'allowed', 'admitted'], rows);
  console.log();
}

async function restarts(deployment: Deployment, rounds: number, callers: number, pause: number): Promise<void> {
  const { replicas } = deployment;
  const all = (): ReturnType<typeof keepCalling> =>
    keepCalling([...inlineCalls(deployment, callers, pause), ...catalogCalls(deployment, 1, pause)]);

  const calm = all();
  await sleep(5_000);
  const before = await calm.stop();
  await sleep(200);
  const shares = (protocol: string): readonly string[] =>
    replicas.map(({ server }) => String(server.output().match(new RegExp(`"protocol":"${protocol}"`, 'g'))?.length));
  printTable(
    ['requests served', ...replicas.map((_, index) => `replica ${index + 1}`)],
    [
      ['REST', ...shares('rest')],
      ['gRPC', ...shares('grpc')],
    ],
  );
  console.log();

  const stillness = watchStillness();
  const load = all();
  const took: number[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const replica of replicas) {
      const started = performance.now();
      const status = await replica.restart();
      took.push(performance.now() - started);
      if (status !== 0) console.log(`a replica ended with status ${status}`);
      await sleep(2_500);
    }
  }
  const during = await load.stop();
  printTable(TALLY_HEAD, [
    ...before.map((tally) => tallyRow(tally, 'before')),
    ...during.map((tally) => tallyRow(tally, `${took.length} restarts`)),
  ]);
  printFaults([...before, ...during]);
  const mean = took.reduce((sum, one) => sum + one, 0) / took.length / 1000;
  console.log(
    `from SIGTERM to ready again: ${mean.toFixed(1)} s, of which 1 s is the drain delay; the machine itself stood still for ${stillness.look().toFixed(0)} ms at most\n`,
  );
}
