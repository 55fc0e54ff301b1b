/**
 * What a job costs: each family states the arithmetic of the profiles that it measures. Scheduling asks by a family's
 * name and knows none.
 */
import { type CostProfile, type JobSize, plainCost } from './cost-profile.ts';
import { shortlistCost } from './families/remote/profile.ts';
import { packedCost } from './families/two-stage/profile.ts';
import { type FamilyName, isRemote, type Manifest } from './packages/manifest.ts';

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

/** Milliseconds of the largest request that the limits allow, with nothing cached. */
export function worstCost(profile: CostProfile, { limits, family }: Pick<Manifest, 'limits' | 'family'>): number {
  return jobCost(family, profile, {
    premiseTokens: limits.inputTokens,
    choices: limits.choices,
    uncached: limits.choices,
    choiceTokens: limits.candidateTokens,
  });
}

/** What a model's largest legal request takes, if that is more than `bound` milliseconds. Undefined if it is not. */
export function limitsProblem(
  profile: CostProfile,
  manifest: Pick<Manifest, 'limits' | 'family'>,
  bound: number,
): string | undefined {
  const worst = worstCost(profile, manifest);
  if (worst <= bound) return undefined;
  const where = isRemote(manifest.family)
    ? 'by its inference server, one batch at a time'
    : 'on one core of this machine';
  return `limits: the largest legal request takes ${Math.round(worst)} ms ${where}, more than ${bound} ms`;
}
