/** Judges the canary decision of a package. */

import type { Canary } from '../packages/manifest.ts';
import type { JobResult } from './messages.ts';

/** What is wrong with the canary's decision; undefined if it is the expected one. */
export function canaryProblem({ choices, choice }: Canary, result: JobResult): string | undefined {
  if (result.kind !== 'scored') return `the canary decision ended as ${result.kind}`;
  const best = result.probabilities.indexOf(Math.max(...result.probabilities));
  const sound = result.probabilities.every((each) => each >= 0 && each <= 1);
  if (!sound) return 'the canary decision has probabilities outside 0 to 1';
  const chosen = choices[best];
  return chosen === choice ? undefined : `the canary chose "${chosen}" instead of "${choice}"`;
}
