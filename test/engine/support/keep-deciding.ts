/** Callers that decide on and on, while something happens to the engine. */
import type { ExecutionContext } from 'ava';
import type { ScoreJob } from '../../../src/engine/engine.ts';
import { keepCalling } from '../../support/keep-calling.ts';
import { probabilitiesOf, type TestEngine, terms } from './engine.ts';

/** What became of the decisions so far. */
export interface Deciding {
  /** The revisions that decided. */
  readonly revisions: ReadonlySet<string>;
  /** The different probabilities, as JSON. */
  readonly answers: ReadonlySet<string>;
  made(): number;
  /** Resolves when the last decision has been made, to how often each thing went wrong. */
  stop(): Promise<Readonly<Record<string, number>>>;
}

/** Three callers, each of which decides until `stop` or the end of the test. */
export function keepDeciding(t: ExecutionContext<unknown>, engine: TestEngine, request: () => ScoreJob): Deciding {
  const revisions = new Set<string>();
  const answers = new Set<string>();
  let made = 0;
  const call = async (): Promise<undefined> => {
    const asked = request();
    answers.add(JSON.stringify(probabilitiesOf(asked, await engine.score(asked, terms()))));
    revisions.add(asked.revision);
    made++;
  };
  const calling = keepCalling([{ name: 'decisions', callers: 3, pause: 5, call }]);
  const stop = async (): Promise<Readonly<Record<string, number>>> => (await calling.stop())[0]?.faults ?? {};
  t.teardown(stop);
  return { revisions, answers, made: () => made, stop };
}
