/** Rows to requests. Rows of ids share a request only with rows of their length: nothing is padded. */
import type { CallBounds, InputTensor } from './options.ts';
import { type Row, rowBytes } from './tensors.ts';

/** The places of rows that make a request, for each request. A decision's rows make the same requests however often it is made. */
export function batchesOf(
  rows: readonly Row[],
  inputs: readonly InputTensor[],
  bounds: Pick<CallBounds, 'rows' | 'messageBytes'>,
): readonly (readonly number[])[] {
  const byLength = Map.groupBy(rows.keys(), (place) => {
    const row = rows[place] as Row;
    return 'ids' in row ? row.ids.length : 0;
  });
  const batches: number[][] = [];
  for (const places of byLength.values()) {
    let batch: number[] = [];
    let bytes = 0;
    for (const place of places) {
      const size = rowBytes(rows[place] as Row, inputs);
      if (batch.length > 0 && (batch.length === bounds.rows || bytes + size > bounds.messageBytes)) {
        batches.push(batch);
        batch = [];
        bytes = 0;
      }
      batch.push(place);
      bytes += size;
    }
    batches.push(batch);
  }
  return batches;
}
