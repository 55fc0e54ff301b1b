/**
 * Three complete replicas with a real Redis, behind a real nginx with the shipped configuration: how the load spreads,
 * limits over all replicas, a rolling restart under load, failovers of Redis behind Sentinels and as a cluster, and, in
 * network namespaces, a host that is cut off. A file of its own: each benchmark is run by the `run.ts` of its folder.
 */
import { hosts } from './hosts.ts';
import { redisTrouble } from './redis-trouble.ts';
import { rolling } from './rolling.ts';

/**
 * Runs the benchmark and prints its tables. `--rounds N` of restarts, `--callers N` for each protocol, `--pause MS`
 * after each answer, `--cut SECONDS`; `--only 1|2|3` runs one of the three parts.
 */
export async function run(options: Record<string, number>): Promise<void> {
  // The handlers of 'exit' end everything that was started; a signal by itself would not run them.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  const { rounds = 3, callers = 4, pause = 40, cut = 45, only } = options;
  if (only === undefined || only === 1) await rolling(rounds, callers, pause);
  if (only === undefined || only === 2) await redisTrouble(callers, pause);
  if (only === undefined || only === 3) await hosts(cut, callers, pause);
}
