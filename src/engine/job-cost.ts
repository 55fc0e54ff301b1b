/**
 * What a job costs: each family states the arithmetic of the profiles that it measures. Scheduling asks by a family's
 * name and knows none.
 */
import { type CostProfile, type JobSize, plainCost } from './cost-profile.ts';
import { shortlistCost } from './families/remote/profile.ts';
import { packedCost } from './families/two-stage/profile.ts';
import type { FamilyName } from './packages/manifest.ts';

/** `costOf`: the arithmetic of another family, for one whose jobs are made of that one's. */
type JobCost = (profile: CostProfile, size: JobSize, costOf: typeof jobCost) => number;

/** A name without an arithmetic does not compile. */
const COSTS: Readonly<Record<FamilyName, JobCost>> = {
  'bi-encoder': plainCost,
  'nli-cross-encoder': plainCost,
  'two-stage': packedCost,
  remote: shortlistCost,
  'open-inference': shortlistCost,
  // It has no jobs of its own: those of its steps cost something.
  cascade: () => 0,
};

/** Milliseconds that a job of this size takes on one core, or at a server that does nothing else. */
export function jobCost(family: FamilyName, profile: CostProfile, size: JobSize): number {
  return COSTS[family](profile, size, jobCost);
}
