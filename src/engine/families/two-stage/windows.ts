/** A premise of any length as windows that the stages can read. Nothing is lost. */

import type { TwoStageOptions, WindowOptions } from './options.ts';
import type { Ids } from './packs.ts';

/** What every window carries of the instruction, and the windows of the text: one if it fits. */
export interface Windows {
  readonly instruction: Ids;
  readonly windows: readonly Ids[];
}

/** An instruction's tokens past those that are carried go before the input's. */
export function splitPremise(instruction: Ids, input: Ids, options: WindowOptions): Windows {
  const { premise, carriedInstruction, segment, least, stops } = options;
  const carried = instruction.slice(0, carriedInstruction);
  const text = [...instruction.slice(carriedInstruction), ...input];
  if (text.length <= premise - 3 - carried.length) return { instruction: carried, windows: [text] };
  const windows: Ids[] = [];
  let start = 0;
  for (const [i, token] of text.entries()) {
    const length = i + 1 - start;
    if (length < segment && (length < least || !stops.includes(token))) continue;
    windows.push(text.slice(start, i + 1));
    start = i + 1;
  }
  if (start < text.length) windows.push(text.slice(start));
  return { instruction: carried, windows };
}

/** Full packs that the windows of one request may take together, if there are more than one. */
export const fullPacks = 4;

/**
 * How many windows stage B reads: `read`, or as many as `fullPacks` packs have room for if the choices are long. `choices`: the tokens of each.
 */
export function readableWindows(
  carried: number,
  choices: readonly number[],
  { windows: { segment, read }, best, packTokens }: Pick<TwoStageOptions, 'windows' | 'best' | 'packTokens'>,
): number {
  const longest = [...choices].sort((a, b) => b - a).slice(0, best);
  const tokens = longest.reduce((sum, length) => sum + length + 1, carried + segment + 3);
  return Math.min(read, Math.max(1, Math.floor((fullPacks * packTokens) / tokens)));
}

/**
 * How much each segment matters: how far it is nearer to a choice, or to the instruction, than the text's segments are on the whole, in standard
 * deviations. `cosines`: of each segment with every choice; `about`: of each with the instruction.
 */
export function relevanceOf(cosines: readonly Float64Array[], about: readonly number[]): readonly number[] {
  const asked = standardised(about);
  const near = new Array<number>(cosines.length).fill(Number.NEGATIVE_INFINITY);
  for (let choice = 0; choice < (cosines[0]?.length ?? 0); choice++) {
    const values = standardised(cosines.map((segment) => segment[choice] as number));
    for (const [w, value] of values.entries()) near[w] = Math.max(near[w] as number, value);
  }
  return near.map((value, w) => value + 0.5 * (asked[w] as number));
}

function standardised(values: readonly number[]): readonly number[] {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const square = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return values.map((value) => (value - mean) / (Math.sqrt(square) + 1e-6));
}

/** The places of the `most` highest values, in rising order; of equal ones the first. */
export function highest(values: ArrayLike<number>, most: number): readonly number[] {
  return Array.from(values, (_, i) => i)
    .sort((a, b) => (values[b] as number) - (values[a] as number) || a - b)
    .slice(0, most)
    .sort((a, b) => a - b);
}
