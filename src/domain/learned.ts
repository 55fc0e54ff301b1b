/**
 * A learned state as decisions use it: softmax(scale · ln p + bias + weights · vector). It is applied in the serving process, in doubles and always in
 * one order, so that the engine process that scored the text leaves no trace.
 */
import { dot, softmax } from '../engine/families/probabilities.ts';
import { digestOf, type LearnedRecord, type LearnedWeights } from '../stores/catalog-additions.ts';
import { DomainError } from './errors.ts';
import { logOf, type Parameters, type RegressionData } from './learning/regression.ts';

/** What a catalog learned. */
export interface Learned {
  readonly digest: string;
  /** The revision that it belongs to. */
  readonly model: string;
  /** Whether the text's vector is needed. */
  readonly readsVector: boolean;
  /** What it takes in memory, about. */
  readonly bytes: number;
  /** The distribution over the choices in code-unit order. Throws STORAGE_CORRUPT if the vector is not of the length that was learned on. */
  decide(probabilities: Float64Array, vector: Float32Array | undefined): Float64Array;
}

/** A state from its record, which the store has checked. */
export function createLearned({ digest, model, scale, bias, weights }: LearnedRecord): Learned {
  const rows = weights === undefined ? undefined : rowsOf(weights);
  return {
    digest,
    model,
    readsVector: rows !== undefined,
    bytes: 8 * bias.length + 4 * bias.length * (weights?.width ?? 0),
    decide(probabilities, vector) {
      if (rows !== undefined && vector?.length !== weights?.width) {
        throw new DomainError('STORAGE_CORRUPT', 'what the catalog learned does not fit its model');
      }
      const logits = probabilities.map((p, k) => {
        const learned = rows === undefined ? 0 : dot(rows[k] as Float32Array, vector as Float32Array);
        return scale * logOf(p) + (bias[k] as number) + learned;
      });
      return softmax(logits);
    },
  };
}

const LARGEST = 127;

function rowsOf({ width, row_scales, rows }: LearnedWeights): readonly Float32Array[] {
  const values = new Int8Array(Buffer.from(rows, 'base64'));
  return row_scales.map((scale, k) =>
    Float32Array.from(values.subarray(k * width, (k + 1) * width), (value) => value * scale),
  );
}

/** What decides of a state, of fitted parameters. */
export function learnedOf(
  { choices, vectors }: RegressionData,
  parameters: Parameters,
  facts: Pick<LearnedRecord, 'model' | 'basis' | 'rung'>,
): Omit<LearnedRecord, 'learned_at' | 'examples' | 'before' | 'after'> {
  const bias = [...parameters.subarray(1, 1 + choices)];
  const width = parameters.length > 1 + choices ? (vectors?.width ?? 0) : 0;
  const state = { ...facts, scale: parameters[0] as number, bias };
  if (width === 0 || vectors === undefined) return { ...state, digest: digestOf(state) };
  const rows = new Int8Array(choices * width);
  const row_scales: number[] = [];
  for (let k = 0; k < choices; k++) {
    const row = parameters.subarray(1 + choices + k * width, 1 + choices + (k + 1) * width);
    const scale = Math.max(1e-12, ...row.map(Math.abs)) / LARGEST;
    row_scales.push(scale);
    for (const [j, value] of row.entries()) {
      rows[k * width + j] = Math.round(value / scale);
      // The weights were fitted to vectors less their mean.
      bias[k] = (bias[k] as number) - scale * (rows[k * width + j] as number) * (vectors.mean[j] as number);
    }
  }
  const weights = { width, row_scales, rows: Buffer.from(rows.buffer).toString('base64') };
  return { ...state, weights, digest: digestOf({ ...state, weights }) };
}
