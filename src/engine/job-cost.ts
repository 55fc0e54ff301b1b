/**
 * What a job costs, by the profile that its model's family measured: of a premise and its choices, unless the family
 * has an arithmetic of its own. Scheduling asks here and knows no family.
 */
import { type CostProfile, costAt, type JobSize } from './cost-profile.ts';
import { shortlistCost } from './families/remote/profile.ts';
import { packCost } from './families/two-stage/profile.ts';

/** Milliseconds that a job of this size takes on one core, or at a server that does nothing else. */
export function jobCost(profile: CostProfile, size: JobSize): number {
  const ofBoth = shortlistCost(profile, size, jobCost);
  if (ofBoth !== undefined) return ofBoth;
  const tokens = size.choiceTokens + (profile.choiceReadsPremise ? size.premiseTokens : 0);
  const each = costAt(profile.choice, tokens);
  return costAt(profile.premise, size.premiseTokens) + size.uncached * each + packCost(profile, size);
}
