/**
 * Measures what the runs of both stages cost on this machine, and computes the cost of stage B's runs: how many a
 * decision of some size makes, and how long they are.
 */
import { type CostCurve, type CostProfile, costAt, type JobSize, plainCost } from '../../cost-profile.ts';
import type { ModelLimits } from '../../engine.ts';
import { unhindered } from '../family.ts';
import { measureCurve } from '../temperature.ts';
import type { TwoStageOptions } from './options.ts';
import { FRAME_TOKENS, type Ids, type StageA, type StageB } from './stages.ts';
import { firstWindowFits, windowsThatFit } from './windows.ts';

/** The special tokens around a text that stage A reads. */
const STAGE_A_FRAME = 2;

/** Rejects with what a graph throws that has no positions for a run of the largest size. */
export async function measureTwoStage(
  stageA: StageA,
  stageB: StageB,
  { special, windows, packTokens, best, stack }: TwoStageOptions,
  { inputTokens, candidateTokens }: ModelLimits,
): Promise<TwoStageProfile> {
  const ids = (tokens: number): Ids => new Array<number>(tokens).fill(special.sep);
  const cut = windows.premise - STAGE_A_FRAME;
  const encoding = await measureCurve([1, windows.least, windows.segment, cut], (tokens) =>
    stageA.encode(ids(tokens), unhindered),
  );
  const [, shortest = 0, longest = 0, full = 0] = encoding.map(([, cost]) => cost);
  // Beyond one window the text is encoded sentence by sentence, and the instruction once. There may be many short
  // sentences or few long ones: whatever costs more counts.
  const inSegments = (tokens: number): number => {
    const few = Math.ceil(tokens / windows.segment) * longest;
    return longest + Math.max(few, Math.ceil(tokens / windows.least) * shortest);
  };
  const whole = Math.max(cut + 1, inputTokens);
  const longestPremise = windows.premise - FRAME_TOKENS;
  // Half a small run is premise, as with a few choices; the largest has a whole window and the longest choices, so that
  // a graph without positions for them fails here.
  const run = await measureCurve([16, packTokens / 4, packTokens], (tokens) => {
    const premise = Math.min(longestPremise, Math.floor(tokens / 2) - FRAME_TOKENS);
    const room = tokens - premise - FRAME_TOKENS;
    const blocks = Math.max(1, Math.floor(room / (candidateTokens + 1)));
    const block = ids(Math.min(candidateTokens, Math.floor(room / blocks) - 1));
    return stageB.read([], ids(premise), new Array<Ids>(blocks).fill(block), unhindered);
  });
  return {
    premise: [...encoding.slice(0, 1), [cut - 1, full], [cut, inSegments(cut)], [whole, inSegments(whole)]],
    choice: await measureCurve([1, candidateTokens], (tokens) => stageA.encode(ids(tokens), unhindered)),
    choiceReadsPremise: false,
    choicesCached: true,
    packed: {
      run,
      packTokens,
      best,
      window: windows.premise,
      segment: windows.carriedInstruction + windows.segment + FRAME_TOKENS,
      windows: windows.read,
      silent: stack.lean > 0 ? windows.carriedInstruction : 0,
    },
  };
}

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

/** Milliseconds of a job of this size: of stage A, as every family has it, and of all runs of stage B. */
export function packedCost(profile: CostProfile, size: JobSize): number {
  const { packed } = profile as TwoStageProfile;
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
  return plainCost(profile, size) + (windows * over(premise) + first + silent);
}
