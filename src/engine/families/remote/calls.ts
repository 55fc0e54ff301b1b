/** The inferences that are asked of one server: bounded, in time, made again where that is safe, and counted. */

import type { CallOutcome } from '../../engine.ts';
import type { InferenceCalls } from '../../worker/messages.ts';
import type { ChoiceVectors } from '../choice-vectors.ts';
import type { InferenceClient } from '../open-inference/client.ts';
import type { OpenInferenceOptions } from '../open-inference/options.ts';
import { inferRequest, outputOf, type Row, rowBytes } from '../open-inference/tensors.ts';
import { CallFailed } from './failures.ts';
import { createRetryBudget } from './retry-throttle.ts';
import { createGate } from './semaphore.ts';

/** Whose call it is and until when. */
export interface JobCall {
  readonly signal: AbortSignal;
  /** On the clock of `performance.now()`. */
  readonly deadline: number;
  /** The part of the process's cache that the caller may learn of. */
  readonly vectors: ChoiceVectors;
}

/** Numbers of a request's rows, row by row. */
export interface RowValues {
  readonly values: Float64Array;
  readonly width: number;
}

/** Calls of one server. */
export interface Calls {
  /** One request with these rows. Rejects with CallFailed. */
  infer(rows: readonly Row[], call: JobCall): Promise<RowValues>;
  /** What was counted since it was last asked; undefined if nothing was. */
  count(): InferenceCalls | undefined;
}

/** What calls need. */
export interface CallsOptions {
  readonly options: OpenInferenceOptions;
  /** The client of the moment. */
  client(): InferenceClient;
  /** Called when a call found no server. */
  unreachable(): void;
}

/** The wait before a call is made again, milliseconds, and as much again at random. */
const retryWait = 20;

const noOutcomes: Readonly<Record<CallOutcome, number>> = {
  answered: 0,
  unavailable: 0,
  refused: 0,
  malformed: 0,
  timed_out: 0,
  canceled: 0,
};

/** Calls with nothing under way. */
export function createCalls({ options, client, unreachable }: CallsOptions): Calls {
  const { bounds, inputs, output } = options;
  const gate = createGate(bounds);
  const retries = createRetryBudget();
  let outcomes = { ...noOutcomes };
  let counts = { rows: 0, retries: 0, seconds: 0 };
  let sequence = 0;

  const once = async (rows: readonly Row[], { signal, deadline }: JobCall): Promise<RowValues> => {
    const began = performance.now();
    const within = Math.min(bounds.timeoutMs, deadline - began);
    if (within <= 0) throw new CallFailed('timed_out', 'its time was up before it was sent');
    const id = String(++sequence);
    try {
      const response = await client().infer(inferRequest(rows, options, id), { signal, within });
      const found = outputOf(response, output, { rows: rows.length, id });
      outcomes.answered++;
      counts.rows += rows.length;
      counts.seconds += (performance.now() - began) / 1000;
      retries.succeeded();
      return found;
    } catch (error) {
      if (error instanceof CallFailed) outcomes[error.outcome]++;
      throw error;
    }
  };

  return {
    async infer(rows, call) {
      const bytes = rows.reduce((sum, row) => sum + rowBytes(row, inputs), 0);
      const leave = await gate.enter(bytes, call.signal).catch(() => {
        throw new CallFailed('canceled', 'nobody waits for it any more');
      });
      try {
        try {
          return await once(rows, call);
        } catch (error) {
          // Nothing else is safe to make again: the server may be at work on it still. Scoring has no effects, so no harm is done if it was.
          if (!(error instanceof CallFailed) || error.outcome !== 'unavailable') throw error;
          const wait = retryWait * (1 + Math.random());
          if (!retries.failed() || performance.now() + wait >= call.deadline) throw error;
          counts.retries++;
          await new Promise((resolve) => setTimeout(resolve, wait));
          return await once(rows, call);
        }
      } catch (error) {
        if (error instanceof CallFailed && error.outcome === 'unavailable') unreachable();
        throw error;
      } finally {
        leave();
      }
    },
    count() {
      if (Object.values(outcomes).every((count) => count === 0)) return undefined;
      const taken = { outcomes, ...counts };
      outcomes = { ...noOutcomes };
      counts = { rows: 0, retries: 0, seconds: 0 };
      return taken;
    },
  };
}
