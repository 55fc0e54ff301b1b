/** Arithmetic of vectors, in doubles. */

/** normalise((1 - weight) · a + weight · b). */
export function mixed(a: Float32Array, b: Float32Array, weight: number): Float32Array {
  const sum = new Float64Array(a.length);
  for (let i = 0; i < a.length; i++) sum[i] = (1 - weight) * (a[i] as number) + weight * (b[i] as number);
  const length = lengthOf(sum);
  if (length > 0) for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] as number) / length;
  return Float32Array.from(sum);
}

/** The vector at length 1, untouched if it has that already; undefined for one without direction. */
export function normalised(vector: Float64Array): Float32Array | undefined {
  const length = lengthOf(vector);
  if (!(length > 0) || !Number.isFinite(length)) return undefined;
  // It is a float32 vector that was normalised before.
  if (Math.abs(length - 1) < 1e-6) return Float32Array.from(vector);
  return Float32Array.from(vector, (value) => value / length);
}

function lengthOf(vector: Float64Array): number {
  let square = 0;
  for (const value of vector) square += value * value;
  return Math.sqrt(square);
}

/** The mean of vectors of one width, at length 1. */
export function middle(vectors: readonly Float32Array[]): Float32Array {
  const sum = new Float64Array(vectors[0]?.length ?? 0);
  for (const vector of vectors)
    for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] as number) + (vector[i] as number);
  return normalised(sum) ?? Float32Array.from(sum);
}
