/**
 * The work of a process that asks inference servers: any number of jobs at a time, as many as the pool gives it. Loads come one after the other. The
 * messages are those of an engine.
 */
import { createChoiceVectorCache } from '../families/choice-vectors.ts';
import { type InferenceModel, loadInferenceModel } from '../families/open-inference/model.ts';
import { reasonOf } from '../families/remote/failures.ts';
import { InvalidOptions } from '../packages/checker.ts';
import type { FromEngine, LoadMessage, PrepareMessage, ScoreMessage, ToEngine } from '../worker/messages.ts';

/** What the process's entry does with the loop. */
export interface InferenceLoop {
  receive(message: ToEngine): void;
  /** Tells the pool of progress and of calls, if there is something to tell; called often. */
  report(): void;
}

/** `send` delivers to the pool; `end` is called once after a drain, when all work is done. */
export function createInferenceLoop(
  cacheBytes: number,
  send: (message: FromEngine) => void,
  end: () => void,
): InferenceLoop {
  const cache = createChoiceVectorCache(cacheBytes);
  const models = new Map<string, InferenceModel>();
  const jobs = new Map<number, AbortController>();
  let loading = Promise.resolve();
  let loads = 0;
  let draining = false;

  const endIfIdle = (): void => {
    if (!draining || jobs.size + loads > 0) return;
    for (const model of models.values()) model.close();
    end();
  };

  const load = async ({ key, folder, manifest, profile }: LoadMessage): Promise<void> => {
    const began = performance.now();
    const took = (): number => performance.now() - began;
    try {
      let model = models.get(key);
      if (model === undefined) {
        const unready = (problems: readonly string[]) => send({ kind: 'unready', key, problems });
        model = await loadInferenceModel({ folder, manifest, unready });
        models.set(key, model);
      }
      const { problems, away } = await model.connect();
      if (problems.length > 0) send({ kind: 'load_failed', key, problems, away, took: took() });
      else send({ kind: 'loaded', key, profile: profile ?? (await model.profile()), took: took() });
    } catch (error) {
      const problems = error instanceof InvalidOptions ? error.problems : [reasonOf(error)];
      send({ kind: 'load_failed', key, problems, took: took() });
    }
  };

  const run = async (message: ScoreMessage | PrepareMessage): Promise<void> => {
    const leaving = new AbortController();
    jobs.set(message.job, leaving);
    const call = {
      signal: leaving.signal,
      deadline: performance.now() + message.timeLeft,
      vectors: cache.of(message.key, message.part),
    };
    const model = models.get(message.key);
    const result =
      model === undefined
        ? ({ kind: 'failed', message: `${message.key} is not loaded` } as const)
        : message.kind === 'score'
          ? await model.score(message, call)
          : await model.prepare(message.choices, call);
    jobs.delete(message.job);
    send({ kind: 'finished', job: message.job, result });
  };

  const canary = async (key: string): Promise<void> => {
    const began = performance.now();
    const problem = await (models.get(key)?.canary() ?? 'the model is not loaded');
    send({ kind: 'canary_made', key, problem, took: performance.now() - began });
  };

  const inTurn = (task: () => Promise<void>): void => {
    loads++;
    loading = loading.then(task).finally(() => {
      loads--;
      endIfIdle();
    });
  };

  return {
    receive(message) {
      if (message.kind === 'load') inTurn(() => load(message));
      else if (message.kind === 'canary') inTurn(() => canary(message.key));
      else if (message.kind === 'unload') {
        inTurn(async () => {
          models.get(message.key)?.close();
          models.delete(message.key);
          cache.forget(message.key);
        });
      } else if (message.kind === 'cancel') jobs.get(message.job)?.abort();
      else if (message.kind === 'drain') {
        draining = true;
        endIfIdle();
      } else void run(message).finally(endIfIdle);
    },
    report() {
      for (const model of models.values()) {
        const calls = model.count();
        if (calls !== undefined) send({ kind: 'calls', calls });
      }
      if (jobs.size + loads > 0) send({ kind: 'progress' });
    },
  };
}
