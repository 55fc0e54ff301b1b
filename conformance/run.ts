/** Runs checks one after another, so that a deployment never has more than a few requests of the kit at a time. */
import type { Check, Need } from './check.ts';
import type { Kit } from './kit.ts';
import { BrokenPromise, Skipped } from './outcome.ts';

/** The outcome of a check. `reason`: how the promise is broken, or why the check was not made. */
export type Outcome =
  | { readonly kind: 'passed'; readonly check: Check }
  | { readonly kind: 'failed'; readonly check: Check; readonly reason: string }
  | { readonly kind: 'skipped'; readonly check: Check; readonly reason: string };

/** Why a check is skipped whose need is not met. */
const NEEDS: Readonly<Record<Need, string>> = {
  key: 'needs a key',
  'other-key': 'needs the key of another owner',
};

/** Makes the checks, without those whose id begins with one of `skip`. `report` is called with each outcome. */
export async function runChecks(
  checks: readonly Check[],
  kit: Kit,
  {
    skip = [],
    report = () => {},
  }: { readonly skip?: readonly string[]; readonly report?: (outcome: Outcome) => void } = {},
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const check of checks) {
    const outcome = skip.some((prefix) => check.id.startsWith(prefix))
      ? ({ kind: 'skipped', check, reason: 'left out on request' } as const)
      : await runCheck(check, kit);
    outcomes.push(outcome);
    report(outcome);
  }
  await kit.clear();
  return outcomes;
}

async function runCheck(check: Check, kit: Kit): Promise<Outcome> {
  const has = { key: kit.key !== undefined, 'other-key': kit.otherKey !== undefined };
  const missing = check.needs?.find((need) => !has[need]);
  if (missing !== undefined) return { kind: 'skipped', check, reason: NEEDS[missing] };
  try {
    await check.run(kit);
    return { kind: 'passed', check };
  } catch (error) {
    if (error instanceof Skipped) return { kind: 'skipped', check, reason: error.message };
    if (error instanceof BrokenPromise) return { kind: 'failed', check, reason: error.message };
    // The answer has a form that no check expected, such as a number where the contract has an object.
    return {
      kind: 'failed',
      check,
      reason: `the answer cannot be read: ${error instanceof Error ? error.message : error}`,
    };
  }
}
