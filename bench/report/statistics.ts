/** Summaries of samples. */

/** The value below which the share `q` (0 to 1) of the samples lies; NaN if there are none. */
export function quantile(samples: readonly number[], q: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

/** The middle value. */
export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}
