/**
 * Three whole replicas with a real Redis behind a real nginx that has the shipped configuration: how the load spreads,
 * limits over all of them, a rolling restart under load, Redis failing over behind Sentinels and as a cluster, and, on
 * network namespaces, a host that is cut off.
 */
import { hosts } from './hosts.ts';
import { redisTrouble } from './redis-trouble.ts';
import { rolling } from './rolling.ts';

/**
 * `--rounds N` of restarts, `--callers N` a protocol, `--pause MS` after each answer, `--cut SECONDS`;
 * `--only 1|2|3` for one part.
 */
export async function run(options: Record<string, number>): Promise<void> {
  // What was started ends with this process, also when it is told to stop.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  const { rounds = 3, callers = 4, pause = 40, cut = 45, only } = options;
  if (only === undefined || only === 1) await rolling(rounds, callers, pause);
  if (only === undefined || only === 2) await redisTrouble(callers, pause);
  if (only === undefined || only === 3) await hosts(cut, callers, pause);
}
