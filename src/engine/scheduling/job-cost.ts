/** What a job takes, from the profile that its model's family measured. */
import { type CostProfile, costAt, type JobSize } from '../cost-profile.ts';
import type { ModelLimits } from '../engine.ts';
import { shortlistParts } from '../families/remote/shortlist-cost.ts';
import { packCost } from '../families/two-stage/pack-cost.ts';
import { isRemote } from '../packages/family-names.ts';
import type { Manifest } from '../packages/manifest.ts';

/** Milliseconds that a job of this size takes on one core, or at a server that does nothing else. */
export function jobCost(profile: CostProfile, size: JobSize): number {
  const parts = shortlistParts(profile, size);
  if (parts !== undefined) return parts.reduce((sum, part) => sum + jobCost(part.profile, part.size), 0);
  const tokens = size.choiceTokens + (profile.choiceReadsPremise ? size.premiseTokens : 0);
  const each = costAt(profile.choice, tokens);
  return costAt(profile.premise, size.premiseTokens) + size.uncached * each + packCost(profile, size);
}

/** Milliseconds of the largest request that the limits allow, with nothing cached. */
export function worstCost(profile: CostProfile, limits: ModelLimits): number {
  return jobCost(profile, {
    premiseTokens: limits.inputTokens,
    choices: limits.choices,
    uncached: limits.choices,
    choiceTokens: limits.candidateTokens,
  });
}

/** What a model's largest legal request takes, if that is more than `bound` milliseconds. Undefined if it is not. */
export function limitsProblem(
  profile: CostProfile,
  { limits, family }: Pick<Manifest, 'limits' | 'family'>,
  bound: number,
): string | undefined {
  const worst = worstCost(profile, limits);
  if (worst <= bound) return undefined;
  const where = isRemote(family) ? 'by its inference server, one batch at a time' : 'on one core of this machine';
  return `limits: the largest legal request takes ${Math.round(worst)} ms ${where}, more than ${bound} ms`;
}
