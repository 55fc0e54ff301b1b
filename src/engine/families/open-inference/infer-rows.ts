/**
 * Has a server compute all rows of a decision: in batches, as many at a time as it may be asked, given up together when
 * one fails. Rows of ids share a request only with rows of their length: nothing is padded.
 */
import { allTogether, batchesWithin, type RequestBounds } from '../remote/batches.ts';
import type { JobCall } from '../remote/calls.ts';
import type { RemoteServer } from '../remote/remote-server.ts';
import type { InferenceConnection } from './connection.ts';
import type { InputTensor, OpenInferenceOptions } from './options.ts';
import { inferRequest, outputOf, type Row, rowBytes } from './tensors.ts';

/** The server's numbers for each row, in the order of the rows. Rejects with CallFailed. */
export type InferRows = (rows: readonly Row[], call: JobCall) => Promise<readonly Float64Array[]>;

/** Sends rows to one server, in the form that the options say. */
export function createInferRows(
  server: Pick<RemoteServer<InferenceConnection>, 'call'>,
  options: OpenInferenceOptions,
): InferRows {
  const { inputs, output, bounds } = options;
  let sequence = 0;

  const inferBatch = (rows: readonly Row[], call: JobCall) => {
    const bytes = rows.reduce((sum, row) => sum + rowBytes(row, inputs), 0);
    return server.call({ rows: rows.length, bytes }, call, async (connection, terms) => {
      const id = String(++sequence);
      return outputOf(await connection.infer(inferRequest(rows, options, id), terms), output, {
        rows: rows.length,
        id,
      });
    });
  };

  return async (rows, call) => {
    const results = new Array<Float64Array>(rows.length);
    await allTogether(batchesOf(rows, inputs, bounds), call, async (places, part) => {
      const batch = places.map((place) => rows[place] as Row);
      const { values, width } = await inferBatch(batch, part);
      for (const [i, place] of places.entries()) results[place] = values.subarray(i * width, (i + 1) * width);
    });
    return results;
  };
}

/** The places of the rows in each request. The same rows always make the same requests. */
export function batchesOf(
  rows: readonly Row[],
  inputs: readonly InputTensor[],
  bounds: RequestBounds,
): readonly (readonly number[])[] {
  const byLength = Map.groupBy(rows.keys(), (place) => {
    const row = rows[place] as Row;
    return 'ids' in row ? row.ids.length : 0;
  });
  return [...byLength.values()].flatMap((places) =>
    batchesWithin(places, (place) => rowBytes(rows[place] as Row, inputs), bounds),
  );
}
