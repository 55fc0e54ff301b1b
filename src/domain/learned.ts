/**
 * A learned state as decisions use it: softmax(scale · ln p + bias + weights · vector). It is applied in the serving
 * process, in doubles and always in one order, so that the result is the same whichever engine process scored the text.
 */
import { LRUCache } from 'lru-cache';
import { logOf, softmax } from '../engine/tempered.ts';
import type { Logger } from '../logger.ts';
import type { LearnedRecord, LearnedWeights } from '../stores/catalog-additions.ts';
import { DomainError } from './errors.ts';

/** What a catalog learned. */
export class Learned {
  readonly digest: string;
  /** The revision for which it was learned, as `<model_id>@<revision>`. */
  readonly model: string;
  /** About how many bytes of memory it takes. */
  readonly bytes: number;
  readonly #scale: number;
  readonly #bias: readonly number[];
  readonly #rows: Float32Array | undefined;

  /** `record`: as the store has checked it. */
  constructor({ digest, model, scale, bias, weights }: LearnedRecord) {
    this.digest = digest;
    this.model = model;
    this.bytes = 8 * bias.length + 4 * bias.length * (weights?.width ?? 0);
    this.#scale = scale;
    this.#bias = bias;
    this.#rows = weights === undefined ? undefined : rowsOf(weights);
  }

  /** Whether the text's vector is needed. */
  get readsVector(): boolean {
    return this.#rows !== undefined;
  }

  /**
   * The distribution over the choices in code-unit order. Throws STORAGE_CORRUPT if the vector is not of the length
   * that was learned on.
   */
  decide(probabilities: Float64Array, vector: Float32Array | undefined): Float64Array {
    const [rows, bias] = [this.#rows, this.#bias];
    if (rows !== undefined && vector?.length !== rows.length / bias.length) {
      throw new DomainError('STORAGE_CORRUPT', 'what the catalog learned does not fit its model');
    }
    const logits = probabilities.map((p, k) => this.#scale * logOf(p) + (bias[k] as number));
    if (rows !== undefined && vector !== undefined) addProducts(rows, vector, logits);
    return softmax(logits);
  }
}

/** The weights [choices, width] as numbers, from bytes with one scale for each row. */
function rowsOf({ width, row_scales, rows }: LearnedWeights): Float32Array {
  const values = new Int8Array(Buffer.from(rows, 'base64'));
  return Float32Array.from(values, (value, place) => value * (row_scales[Math.floor(place / width)] as number));
}

/** Adds rows · vector to `logits`. Four rows at a time: each number of the vector is read once for all of them. */
function addProducts(rows: Float32Array, vector: Float32Array, logits: Float64Array): void {
  const { length: width } = vector;
  const whole = logits.length - (logits.length % 4);
  for (let k = 0; k < whole; k += 4) {
    const r0 = k * width;
    const [r1, r2, r3] = [r0 + width, r0 + 2 * width, r0 + 3 * width];
    let [s0, s1, s2, s3] = [0, 0, 0, 0];
    for (let j = 0; j < width; j++) {
      const x = vector[j] as number;
      s0 += x * (rows[r0 + j] as number);
      s1 += x * (rows[r1 + j] as number);
      s2 += x * (rows[r2 + j] as number);
      s3 += x * (rows[r3 + j] as number);
    }
    logits[k] = (logits[k] as number) + s0;
    logits[k + 1] = (logits[k + 1] as number) + s1;
    logits[k + 2] = (logits[k + 2] as number) + s2;
    logits[k + 3] = (logits[k + 3] as number) + s3;
  }
  for (let k = whole; k < logits.length; k++) {
    let sum = 0;
    for (let j = 0; j < width; j++) sum += (vector[j] as number) * (rows[k * width + j] as number);
    logits[k] = (logits[k] as number) + sum;
  }
}

/** Notices that are remembered; beyond it those that were given longest ago are forgotten. */
const MOST_NOTICES = 4096;

/** Tells the operator of catalogs that learned for another revision of their model than the one that decides. */
export class UnlearnedNotice {
  readonly #log: Pick<Logger, 'warn'>;
  readonly #given = new LRUCache<string, true>({ maxSize: MOST_NOTICES, sizeCalculation: () => 1 });

  constructor(log: Pick<Logger, 'warn'>) {
    this.#log = log;
  }

  /** Gives the notice, once of each catalog and both revisions. */
  give(owner: string, catalog: string, learnedFor: string, model: string): void {
    const name = `${owner}/${catalog} ${learnedFor} ${model}`;
    if (this.#given.has(name)) return;
    this.#given.set(name, true);
    this.#log.warn(
      { owner, catalog, learnedFor, model },
      'what the catalog learned is for another revision: it decides zero-shot until umpire learn is run again',
    );
  }
}
