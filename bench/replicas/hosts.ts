/**
 * Replicas on hosts of their own: network namespaces on a bridge. One of them is taken off the bridge under load, so
 * that nothing that is sent to it arrives and nobody is told. Needs root and iproute2.
 */
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { decisionOf, restFault } from '../../test/support/decision-calls.ts';
import { keepCalling } from '../../test/support/keep-calling.ts';
import { startRedis, until } from '../../test/support/redis.ts';
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

/** The first three bytes of the addresses of the bridge and the hosts. */
const NETWORK = '10.213.76';
/** The name of the bridge. */
const BRIDGE = 'umpire-br';

/** A network namespace. `within`: the command that runs another within it. */
interface Host {
  readonly name: string;
  readonly host: string;
  readonly within: readonly string[];
  cut(): void;
  mend(): void;
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: 'pipe' });
}

/** Creates the bridge and three hosts. @throws Error if that is not allowed. */
function makeHosts(): { readonly hosts: readonly Host[]; remove(): void } {
  const names = [1, 2, 3].map((number) => `umpire-${number}`);
  const remove = (): void => {
    for (const args of [...names.map((name) => ['netns', 'del', name]), ['link', 'del', BRIDGE]]) {
      try {
        ip(...args);
      } catch {
        // It does not exist.
      }
    }
  };
  try {
    ip('link', 'add', BRIDGE, 'type', 'bridge');
    ip('address', 'add', `${NETWORK}.1/24`, 'dev', BRIDGE);
    ip('link', 'set', BRIDGE, 'up');
    const hosts = names.map((name, index): Host => {
      const [host, within] = [`${NETWORK}.${11 + index}`, ['ip', 'netns', 'exec', name]];
      ip('netns', 'add', name);
      ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
      ip('link', 'set', name, 'master', BRIDGE, 'up');
      ip('-n', name, 'address', 'add', `${host}/24`, 'dev', 'eth0');
      ip('-n', name, 'link', 'set', 'eth0', 'up');
      ip('-n', name, 'link', 'set', 'lo', 'up');
      return {
        ...{ name, host, within },
        cut: () => ip('link', 'set', name, 'nomaster'),
        mend: () => ip('link', 'set', name, 'master', BRIDGE),
      };
    });
    return { hosts, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Cuts a host off for `seconds` and prints a table, or a line if namespaces are not allowed. */
export async function hosts(seconds: number, callers: number, pause: number): Promise<void> {
  let made: ReturnType<typeof makeHosts>;
  try {
    made = makeHosts();
  } catch (error) {
    const { stderr } = error as { stderr?: Buffer };
    console.log(`no network namespaces here, so no host is cut off: ${String(stderr ?? error).trim()}\n`);
    return;
  }
  process.once('exit', made.remove);
  const redis = await startRedis(['--bind', '127.0.0.1', `${NETWORK}.1`, '--protected-mode', 'no']);
  try {
    const deployment = await startDeployment(
      { REDIS_URL: `redis://${NETWORK}.1:${redis.port}` },
      { here: { REDIS_URL: redis.url }, places: made.hosts, env: { UMPIRE_TRUSTED_PROXIES: `${NETWORK}.1` } },
    );
    try {
      await cutOff(deployment, made.hosts[1] as Host, seconds, callers, pause);
    } finally {
      await deployment.stop();
    }
  } finally {
    await redis.stop();
    made.remove();
  }
}

async function cutOff(
  deployment: Deployment,
  host: Host,
  seconds: number,
  callers: number,
  pause: number,
): Promise<void> {
  const { replicas, rest, headers } = deployment;
  const all = () => keepCalling([...inlineCalls(deployment, callers, pause), ...catalogCalls(deployment, 1, pause)]);
  const rows: (readonly string[])[] = [];
  const stillness = watchStillness();
  const load = all();
  await sleep(3_000);
  host.cut();
  await sleep(seconds * 1_000);
  const during = await load.stop();
  const still = stillness.look();
  rows.push(...during.map((tally) => tallyRow(tally, `${host.name} cut off`)));
  host.mend();
  const victim = replicas.find((replica) => replica.host === host.host) as Replica;
  const servedBy = (): number => victim.server.output().split('"msg":"request"').length;
  const before = servedBy();
  const body = JSON.stringify({ ...decisionOf(0), choices: undefined, catalog: 'teams' });
  const back = await until(async () => {
    const fault = restFault(await rest.send({ headers, body }));
    if (fault !== undefined) console.log(`while it comes back: ${fault}`);
    return servedBy() > before + 3;
  }, 60_000);
  const calm = all();
  await sleep(3_000);
  const after = await calm.stop();
  rows.push(...after.map((tally) => tallyRow(tally, 'back')));
  printTable(TALLY_HEAD, rows);
  printFaults([...during, ...after]);
  console.log(`the host that was cut off serves again ${(back / 1000).toFixed(1)} s after it was connected again`);
  console.log(`the machine itself stood still for ${still.toFixed(0)} ms at most\n`);
}
