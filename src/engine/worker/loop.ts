/** An engine process's work: one task at a time, in the order in which the messages came. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { JobStopped, type RunControl } from '../families/family.ts';
import type { FromEngine, ToEngine } from './messages.ts';
import type { LoadedModels } from './models.ts';

const progressInterval = 100;

/** What the process's entry does with the loop. */
export interface WorkerLoop {
  receive(message: ToEngine): void;
}

/** `send` delivers to the pool; `end` is called once after a drain, when all work is done. */
export function createWorkerLoop(
  models: LoadedModels,
  send: (message: FromEngine) => void,
  end: () => void,
): WorkerLoop {
  const waiting: { readonly message: ToEngine; readonly arrived: number }[] = [];
  const canceled = new Set<number>();
  let current: number | undefined;
  let working = false;
  let draining = false;
  let lastProgress = 0;

  const control: Pick<RunControl, 'checkpoint'> = {
    checkpoint() {
      if (current !== undefined && canceled.has(current)) throw new JobStopped();
      const now = performance.now();
      if (now - lastProgress < progressInterval) return;
      lastProgress = now;
      send({ kind: 'progress' });
    },
  };

  const perform = async (message: ToEngine, arrived: number): Promise<void> => {
    const began = performance.now();
    if (message.kind === 'load') {
      const outcome = await models.load(message);
      send({ ...outcome, key: message.key, took: performance.now() - began });
    } else if (message.kind === 'unload') {
      await models.unload(message.key);
    } else if (message.kind === 'canary') {
      const problem = await models.canary(message.key);
      send({ kind: 'canary_made', key: message.key, problem, took: performance.now() - began });
    } else if (message.kind === 'score' || message.kind === 'prepare') {
      current = message.job;
      lastProgress = began;
      const result = await models.run(message, began - arrived, control);
      current = undefined;
      canceled.delete(message.job);
      send({ kind: 'finished', job: message.job, result });
    }
  };

  const work = async (): Promise<void> => {
    working = true;
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      await perform(next.message, next.arrived);
      // A turn of the event loop, so that a cancellation is read before the job that it cancels begins.
      await nextTurn();
    }
    working = false;
    if (draining) end();
  };

  return {
    receive(message) {
      if (message.kind === 'cancel') {
        const at = waiting.findIndex(({ message: { kind, ...rest } }) => 'job' in rest && rest.job === message.job);
        if (at >= 0) {
          waiting.splice(at, 1);
          send({ kind: 'finished', job: message.job, result: { kind: 'canceled' } });
        } else if (current === message.job) canceled.add(message.job);
      } else if (message.kind === 'drain') {
        draining = true;
        if (!working) end();
      } else {
        waiting.push({ message, arrived: performance.now() });
        if (!working) void work();
      }
    },
  };
}
