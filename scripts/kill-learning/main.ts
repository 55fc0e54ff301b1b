/** Kills learning, as scripts/kill-learning.sh describes. */
import { parseArgs } from 'node:util';
import { type Kill, killLearning, STEPS, type Victim } from '../../test/support/kill-learning.ts';

/** What is killed, by the kind of store. */
const VICTIMS: Readonly<Record<'sqlite' | 'redis', readonly Victim[]>> = {
  sqlite: ['command', 'interrupt', 'server'],
  redis: ['command', 'interrupt', 'server', 'store'],
};
/** Milliseconds between a step and the kill, used in turn. */
const DELAYS = [0, 1, 2, 4, 8, 16, 32, 64];

// The handlers of 'exit' end the servers that were started; a signal by itself would not run them.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, store: { type: 'string' } },
});
let count = 0;
for (const kind of ['sqlite', 'redis'] as const) {
  if (values.store !== undefined && values.store !== kind) continue;
  const kills = Array.from({ length: Number(values.rounds) }, () =>
    VICTIMS[kind].flatMap((victim) =>
      STEPS.map((step): Kill => ({ victim, step, delay: DELAYS[count++ % DELAYS.length] as number })),
    ),
  ).flat();
  const {
    kills: done,
    answers,
    faults,
    wrong,
  } = await killLearning(kind, kills, ({ victim, step, delay, status, after }) =>
    console.log(`${kind}: ${victim} killed ${delay} ms after '${step}': exit ${status}, then ${after}`),
  );
  const kept = done.filter(({ after }) => after === 'old').length;
  console.log(`${kind}: ${done.length} kills, ${kept} left the old state and ${done.length - kept} the new one`);
  console.log(`${kind}: ${answers} answers, each of one whole state; without an answer: ${JSON.stringify(faults)}`);
  for (const each of wrong) console.error(`${kind}: WRONG: ${each}`);
  if (wrong.length > 0) process.exitCode = 1;
}
