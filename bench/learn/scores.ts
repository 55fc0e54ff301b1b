/**
 * The scores of every text of a set by the service's own engine. They are kept in a file for each revision of a model,
 * since a set takes minutes.
 */
import { hash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Engine } from '../../src/engine/engine.ts';
import type { ScoredExample } from '../../src/learning/regression.ts';
import type { DataSet } from '../eval/data-sets.ts';

/** Milliseconds that one decision may take. */
const PATIENCE_MS = 600_000;
/** Texts that are scored at a time. */
const LANES = 4;

/** The scores of a set's texts. `choices`: in code-unit order. */
export async function scoresOf(
  engine: Engine,
  { model, revision }: { readonly model: string; readonly revision: string },
  { name, rows }: DataSet,
  choices: readonly string[],
  folder: string,
): Promise<readonly ScoredExample[]> {
  const digest = hash('sha256', JSON.stringify([rows, choices]), 'hex').slice(0, 12);
  const file = join(folder, `${model}@${revision}-${name}-${digest}.bin`);
  const labels = rows.map(({ label }) => choices.indexOf(label));
  if (existsSync(file)) return read(file, labels, choices.length);
  const scored = new Array<ScoredExample>(rows.length);
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let place = next++; place < rows.length; place = next++) {
      const { input, instruction } = rows[place] as (typeof rows)[number];
      const deadline = performance.now() + PATIENCE_MS;
      const terms = { signal: AbortSignal.timeout(PATIENCE_MS), deadline, tenant: 'bench', keyed: true };
      const outcome = await engine.score({ model, revision, input, instruction, choices, vector: true }, terms);
      if (outcome.kind !== 'scored') throw new Error(`a text ended as ${outcome.kind}`);
      // A chat model has none, and can only teach.
      const { probabilities, vector = new Float32Array() } = outcome;
      scored[place] = { probabilities, vector, label: labels[place] as number };
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  // The file is written under another name first, so that it is complete or not there.
  const parts = scored.flatMap(({ probabilities, vector = new Float32Array() }) => [
    bytesOf(probabilities),
    bytesOf(vector),
  ]);
  writeFileSync(`${file}.part`, Buffer.concat(parts));
  renameSync(`${file}.part`, file);
  return scored;
}

function read(file: string, labels: readonly number[], choices: number): readonly ScoredExample[] {
  const bytes = readFileSync(file);
  const size = bytes.length / labels.length;
  return labels.map((label, place) => {
    // The row is copied, since a Float64Array must begin at a multiple of eight bytes.
    const own = new Uint8Array(bytes.subarray(place * size, (place + 1) * size)).buffer;
    return { probabilities: new Float64Array(own, 0, choices), vector: new Float32Array(own, 8 * choices), label };
  });
}

function bytesOf({ buffer, byteOffset, byteLength }: Float64Array | Float32Array): Uint8Array {
  return new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
}
