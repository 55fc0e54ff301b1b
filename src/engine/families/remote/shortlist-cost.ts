/** The cost of a decision for which a local model picks the choices that a server decides among. */
import type { CostProfile, JobSize } from '../../cost-profile.ts';

/**
 * The profile of both. The curves of `CostProfile` itself give the cost of a premise at the server and of a choice in
 * the local model; a job's cost is that of its parts.
 */
export interface ShortlistProfile extends CostProfile {
  readonly shortlisted: {
    /** The most choices that the server takes. */
    readonly cap: number;
    readonly local: CostProfile;
    readonly decider: CostProfile;
  };
}

/** A part of a job, and the profile that says what it costs. */
export interface CostPart {
  readonly profile: CostProfile;
  readonly size: JobSize;
}

/** The parts of a job of this size; undefined for a profile of another family. */
export function shortlistParts(profile: CostProfile, size: JobSize): readonly CostPart[] | undefined {
  if (!isShortlisted(profile)) return undefined;
  const { cap, local, decider } = profile.shortlisted;
  const part = (of: CostProfile, choices: number): CostPart => {
    const uncached = of.choicesCached ? Math.min(size.uncached, choices) : choices;
    return { profile: of, size: { ...size, choices, uncached } };
  };
  if (size.choices <= cap) return [part(decider, size.choices)];
  return [part(local, size.choices), part(decider, cap)];
}

function isShortlisted(profile: CostProfile): profile is ShortlistProfile {
  return 'shortlisted' in profile;
}
