/** Measures what the runs of both stages cost on this machine. */
import type { ModelLimits } from '../../engine.ts';
import { unhindered } from '../family.ts';
import { measureCurve } from '../measure-curve.ts';
import type { TwoStageOptions } from './options.ts';
import type { TwoStageProfile } from './pack-cost.ts';
import { FRAME_TOKENS, type Ids } from './packs.ts';
import type { StageA, StageB } from './stages.ts';

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
