/** Callers that decide on and on, while something happens to the engine. */
import type { ExecutionContext } from 'ava';
import type { ScoreJob } from '../../../src/engine/engine.ts';
import { probabilitiesOf, type TestEngine, terms } from './engine.ts';

/** What became of the decisions so far. */
export interface Deciding {
  /** At most one of each caller, which ends with it. */
  readonly failures: readonly unknown[];
  /** The revisions that decided. */
  readonly revisions: ReadonlySet<string>;
  /** The different probabilities, as JSON. */
  readonly answers: ReadonlySet<string>;
  made(): number;
  /** Resolves when the last decision has been made. */
  stop(): Promise<void>;
}

/** Three callers, each of which decides until `stop`, the end of the test or its first failure. */
export function keepDeciding(t: ExecutionContext<unknown>, engine: TestEngine, request: () => ScoreJob): Deciding {
  const failures: unknown[] = [];
  const revisions = new Set<string>();
  const answers = new Set<string>();
  let made = 0;
  let stopped = false;
  const decide = async (): Promise<void> => {
    const asked = request();
    answers.add(JSON.stringify(probabilitiesOf(asked, await engine.score(asked, terms()))));
    revisions.add(asked.revision);
    made++;
  };
  const call = async (): Promise<void> => {
    while (!stopped) {
      try {
        await decide();
      } catch (error) {
        failures.push(error);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };
  const done = Promise.all([call(), call(), call()]);
  const stop = async (): Promise<void> => {
    stopped = true;
    await done;
  };
  t.teardown(stop);
  return { failures, revisions, answers, made: () => made, stop };
}
