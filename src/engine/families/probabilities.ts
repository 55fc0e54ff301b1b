/** From logits to probabilities. */

/** Softmax of `logits`, computed in doubles in the given order; equal logits get equal numbers. */
export function softmax(logits: Float64Array): Float64Array {
  let highest = Number.NEGATIVE_INFINITY;
  for (const logit of logits) highest = Math.max(highest, logit);
  const probabilities = new Float64Array(logits.length);
  let sum = 0;
  for (let i = 0; i < logits.length; i++) {
    const weight = Math.exp((logits[i] ?? 0) - highest);
    probabilities[i] = weight;
    sum += weight;
  }
  for (let i = 0; i < probabilities.length; i++) probabilities[i] = (probabilities[i] ?? 0) / sum;
  return probabilities;
}

/** The inner product of two vectors of one length, summed in doubles from the first element on. */
export function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number);
  return sum;
}
