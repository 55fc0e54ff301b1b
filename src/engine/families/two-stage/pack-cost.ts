/** The cost of stage B's runs: how many a decision of some size makes, and how long they are. */
import { type CostCurve, type CostProfile, costAt, type JobSize } from '../../cost-profile.ts';
import { FRAME_TOKENS } from './packs.ts';
import { firstWindowFits, windowsThatFit } from './windows.ts';

/** Runs of stage B over a window of the premise and as many choices as fit. */
export interface PackedRuns {
  /** The cost of one run by its tokens. */
  readonly run: CostCurve;
  /** The most tokens of a run. */
  readonly packTokens: number;
  /** The most choices that are read. */
  readonly best: number;
  /** The most tokens of a premise that is read whole, the frame included. */
  readonly window: number;
  /** A longer premise is read in windows of this many tokens, at most `windows` of them. */
  readonly segment: number;
  readonly windows: number;
  /**
   * The most tokens of an instruction that is read once more without a text, which happens if its choices are new and
   * all of them are read; 0 if it never happens.
   */
  readonly silent: number;
}

/** The profile that this family measures. */
export interface TwoStageProfile extends CostProfile {
  readonly packed: PackedRuns;
}

/** Milliseconds of all runs of stage B that a job of this size makes; 0 for a profile of another family. */
export function packCost(profile: CostProfile, size: JobSize): number {
  if (!isTwoStage(profile)) return 0;
  const { packed } = profile;
  const read = Math.min(size.choices, packed.best);
  const block = size.choiceTokens + 1;
  const blocks = read * block;
  const over = (premise: number): number => {
    const fitting = Math.min(read, Math.max(1, Math.floor((packed.packTokens - premise) / block)));
    return Math.ceil(read / fitting) * costAt(packed.run, premise + fitting * block);
  };
  const framed = size.premiseTokens + FRAME_TOKENS;
  const whole = framed <= packed.window;
  const premise = whole ? framed : packed.segment;
  const windows = whole ? 1 : windowsThatFit(premise + blocks, packed.windows, packed.packTokens);
  const first = !whole && firstWindowFits(packed.window + blocks, packed.packTokens) ? over(packed.window) : 0;
  const asksSilently = packed.silent > 0 && size.uncached > 0 && size.choices <= packed.best;
  const silent = asksSilently ? over(Math.min(premise, packed.silent + FRAME_TOKENS)) : 0;
  return windows * over(premise) + first + silent;
}

function isTwoStage(profile: CostProfile): profile is TwoStageProfile {
  return 'packed' in profile;
}
