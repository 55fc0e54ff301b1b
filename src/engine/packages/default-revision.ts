/** Which revision a plain model id names. */
import { byCodeUnits } from './manifest.ts';

/** What the choice depends on. */
export interface RevisionClaim {
  readonly revision: string;
  /** Its manifest says `"default": true`. */
  readonly claims: boolean;
  /**
   * `broken`: it cannot be loaded. `proven`: it has been loaded and its canary was right, whatever has become of it
   * since.
   */
  readonly standing: 'proven' | 'valid' | 'broken';
}

/**
 * The last in code-unit order of the proven revisions that claim the name, or of all proven ones if none does: a new
 * revision takes the name when it has shown that it works. While none is proven, the valid ones take their place; while
 * none is valid, all do.
 */
export function defaultRevision(revisions: readonly RevisionClaim[]): string | undefined {
  const proven = revisions.filter(({ standing }) => standing === 'proven');
  const valid = revisions.filter(({ standing }) => standing !== 'broken');
  const candidates = [proven, valid, revisions].find(({ length }) => length > 0) ?? [];
  const claiming = candidates.filter(({ claims }) => claims);
  return (claiming.length > 0 ? claiming : candidates)
    .map(({ revision }) => revision)
    .sort(byCodeUnits)
    .at(-1);
}
