/** All rows of a decision: in batches, as many at a time as the server may be asked, given up together when one fails. */

import type { Calls, JobCall } from '../remote/calls.ts';
import { batchesOf } from './batches.ts';
import type { OpenInferenceOptions } from './options.ts';
import type { Row } from './tensors.ts';

/** The server's numbers for each row, in the order of the rows. Rejects with CallFailed. */
export type InferRows = (rows: readonly Row[], call: JobCall) => Promise<readonly Float64Array[]>;

/** Asks through `calls`. */
export function createInferRows(calls: Calls, { inputs, bounds }: OpenInferenceOptions): InferRows {
  return async (rows, call) => {
    const results = new Array<Float64Array>(rows.length);
    const others = new AbortController();
    const both = AbortSignal.any([call.signal, others.signal]);
    const batches = batchesOf(rows, inputs, bounds).map(async (places) => {
      try {
        const batch = places.map((place) => rows[place] as Row);
        const { values, width } = await calls.infer(batch, { ...call, signal: both });
        for (const [i, place] of places.entries()) results[place] = values.subarray(i * width, (i + 1) * width);
      } catch (error) {
        others.abort();
        throw error;
      }
    });
    const ended = await Promise.allSettled(batches);
    // The first by time: those after it failed because they were given up.
    const failures = ended.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
    const cause = failures.find((error) => error?.outcome !== 'canceled') ?? failures[0];
    if (cause !== undefined) throw cause;
    return results;
  };
}
