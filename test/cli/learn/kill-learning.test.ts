/** A short round of `scripts/kill-learning.sh`: learning that is killed leaves the old state or the new one, whole. */
import test from 'ava';
import { type Kill, killLearning } from '../../support/kill-learning.ts';

const LAST = 'what came of it is printed';

const ROUNDS: Readonly<Record<'sqlite' | 'redis', readonly Kill[]>> = {
  sqlite: [
    { victim: 'command', step: LAST, delay: 0 },
    { victim: 'server', step: LAST, delay: 0 },
    { victim: 'interrupt', step: 'examples are decided', delay: 0 },
  ],
  redis: [
    { victim: 'store', step: LAST, delay: 0 },
    { victim: 'command', step: LAST, delay: 2 },
    { victim: 'store', step: 'written', delay: 0 },
  ],
};

/** Milliseconds: fewer decisions a second than the script makes, which tries every step and many more. */
const PAUSE = 20;

for (const kind of ['sqlite', 'redis'] as const) {
  test.serial(`${kind}: whatever is killed while a catalog learns, the old state decides or the new one`, async (t) => {
    t.timeout(300_000);
    const { kills, answers, wrong } = await killLearning(kind, ROUNDS[kind], undefined, PAUSE);
    t.deepEqual(wrong, []);
    t.is(kills.length, 3);
    t.true(answers > 50);
    // What was written before its store was killed is there afterwards.
    if (kind === 'redis') t.is(kills[2]?.after, 'new');
  });
}
