/** Requests of the Open Inference Protocol as a server in a test reads them. */
import { createHash } from 'node:crypto';
import type { ModelInferRequest } from '../../../gen/inference/grpc_predict_v2_pb.ts';

/** One inference as it arrived. */
export interface ReceivedRequest {
  readonly model: string;
  readonly version: string;
  readonly rows: number;
  /** Shapes of the inputs by name. */
  readonly shapes: Readonly<Record<string, readonly number[]>>;
  /** The whole request but for its id, hashed. */
  readonly digest: string;
  /** Milliseconds that it was given. */
  readonly within: number;
  /** Whether the client gave it up. */
  canceled: boolean;
}

/** One row of an inference. */
export interface ServedRow {
  readonly integers: Readonly<Record<string, BigInt64Array>>;
  readonly texts: Readonly<Record<string, string>>;
}

/** Notes a request. `within`: milliseconds that it was given. */
export function receivedOf(request: ModelInferRequest, within: number): ReceivedRequest {
  const hash = createHash('sha256');
  for (const contents of request.rawInputContents) hash.update(contents).update('|');
  const shapes = Object.fromEntries(request.inputs.map(({ name, shape }) => [name, shape.map(Number)]));
  hash.update(JSON.stringify([request.modelName, request.modelVersion, shapes]));
  return {
    model: request.modelName,
    version: request.modelVersion,
    rows: Number(request.inputs[0]?.shape[0] ?? 0),
    shapes,
    digest: hash.digest('hex'),
    within,
    canceled: false,
  };
}

/** The rows of a request, read by the protocol's own rules. */
export function rowsOf(request: ModelInferRequest): readonly ServedRow[] {
  const count = Number(request.inputs[0]?.shape[0] ?? 0);
  const rows = Array.from({ length: count }, () => ({
    integers: {} as Record<string, BigInt64Array>,
    texts: {} as Record<string, string>,
  }));
  for (const [i, { name, datatype, shape }] of request.inputs.entries()) {
    const raw = request.rawInputContents[i] ?? new Uint8Array();
    const view = new DataView(raw.buffer, raw.byteOffset, raw.length);
    if (datatype === 'BYTES') {
      let at = 0;
      for (const row of rows) {
        const length = view.getUint32(at, true);
        row.texts[name] = new TextDecoder().decode(raw.subarray(at + 4, at + 4 + length));
        at += 4 + length;
      }
      if (at !== raw.length) throw new Error('left-over bytes');
      continue;
    }
    const width = Number(shape[1]);
    const size = datatype === 'INT64' ? 8 : 4;
    if (raw.length !== count * width * size) throw new Error('a tensor has the wrong size');
    for (const [r, row] of rows.entries()) {
      row.integers[name] = BigInt64Array.from({ length: width }, (_, c) => {
        const at = (r * width + c) * size;
        return size === 8 ? view.getBigInt64(at, true) : BigInt(view.getInt32(at, true));
      });
    }
  }
  return rows;
}
