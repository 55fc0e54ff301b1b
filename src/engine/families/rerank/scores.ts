/** Makes logits of a server's scores. */
import { malformed } from '../remote/call-failed.ts';
import type { RerankScores } from './options.ts';

/**
 * Probabilities are kept this far from 0 and 1, where logits would be infinite: half of the step below 1 in single
 * precision.
 */
const LEAST = 2 ** -25;

/** Logits, one for each score. Throws CallFailed `malformed` for a score that is no probability. */
export function logitsOf(scores: Float64Array, { kind }: RerankScores): Float64Array {
  if (kind === 'logit') return scores;
  return scores.map((p) => {
    if (p < 0 || p > 1) throw malformed('a score is no probability');
    const kept = Math.min(Math.max(p, LEAST), 1 - LEAST);
    return Math.log(kept / (1 - kept));
  });
}

/**
 * Why scores cannot tell texts apart: many of them lie exactly where scores were cut off or rounded. Undefined if they
 * can.
 */
export function doubtOf(scores: Float64Array, { kind }: RerankScores): string | undefined {
  const least = Math.min(...scores);
  const greatest = Math.max(...scores);
  if (kind === 'probability') {
    const ends = scores.filter((p) => p === 0 || p === 1).length;
    return ends === 0
      ? undefined
      : `the server's scores are saturated: ${ends} of the canary's ${scores.length} are exactly 0 or 1; have it return logits`;
  }
  // Two equal scores may be chance if a model computes with few digits.
  const cut = [least, greatest].find((end) => 2 * scores.filter((score) => score === end).length > scores.length);
  return cut === undefined
    ? undefined
    : `the server's scores are cut off: most of the canary's are exactly ${cut}; have it return raw logits`;
}
