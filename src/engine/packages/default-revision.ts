/** Which revision a plain model id names. */
import { byCodeUnits } from './manifest.ts';

/** What counts for the choice. */
export interface RevisionClaim {
  readonly revision: string;
  /** Its manifest says `"default": true`. */
  readonly claims: boolean;
  /** Its manifest is valid. */
  readonly valid: boolean;
}

/** The last in code-unit order of those that claim it; without a claim, of the valid ones; without a valid one, of all. */
export function defaultRevision(revisions: readonly RevisionClaim[]): string | undefined {
  const valid = revisions.filter((each) => each.valid);
  const claiming = valid.filter((each) => each.claims);
  const candidates = claiming.length > 0 ? claiming : valid.length > 0 ? valid : revisions;
  return candidates
    .map((each) => each.revision)
    .sort(byCodeUnits)
    .at(-1);
}
