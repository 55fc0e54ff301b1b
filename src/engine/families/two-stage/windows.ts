/** Cuts a premise of any length into windows that the stages can read. Nothing is lost. */

import type { TwoStageOptions, WindowOptions } from './options.ts';
import { FRAME_TOKENS, type Ids } from './stages.ts';

/** The part of the instruction that every window carries, and the windows of the text: one if it fits. */
export interface Windows {
  readonly instruction: Ids;
  readonly windows: readonly Ids[];
}

/**
 * Which windows of a premise stage B reads: how many of the most relevant, and whether also the first one of the whole
 * text.
 */
export interface WindowPlan {
  readonly most: number;
  readonly first: boolean;
}

/** Whether a premise of this many tokens is read as one window. */
export function fitsOneWindow(tokens: number, { premise }: Pick<WindowOptions, 'premise'>): boolean {
  return tokens <= premise - FRAME_TOKENS;
}

/**
 * Cuts a text that does not fit into segments, at the ends of sentences and of `lines`. The instruction's tokens beyond
 * the carried ones are a line before the input's.
 */
export function splitPremise(instruction: Ids, lines: readonly Ids[], options: WindowOptions): Windows {
  const carried = instruction.slice(0, options.carriedInstruction);
  const all = [instruction.slice(options.carriedInstruction), ...lines];
  const text = all.flat();
  if (fitsOneWindow(carried.length + text.length, options)) return { instruction: carried, windows: [text] };
  const segments = all.flatMap((line) => sentencesOf(line, options));
  // Many short lines would need many runs: such a text is cut as if it were one line.
  const most = Math.ceil(text.length / options.least);
  return { instruction: carried, windows: segments.length <= most ? segments : sentencesOf(text, options) };
}

/** The tokens, cut after a stop or where a segment is full. */
function sentencesOf(tokens: Ids, { segment, least, stops }: WindowOptions): readonly Ids[] {
  const segments: Ids[] = [];
  let start = 0;
  for (const [i, token] of tokens.entries()) {
    const length = i + 1 - start;
    if (length < segment && (length < least || !stops.includes(token))) continue;
    segments.push(tokens.slice(start, i + 1));
    start = i + 1;
  }
  if (start < tokens.length) segments.push(tokens.slice(start));
  return segments;
}

/**
 * The tokens of a text line by line, or as one line if it has more lines than tokens: most of them say nothing then.
 * `idsOf` reads a line of any length. A tokenizer that has a token for white space at the end of a text may find
 * another number of tokens in all lines than in `tokens`.
 */
export async function linesOf(
  text: string,
  tokens: Ids,
  idsOf: (line: string) => Promise<Ids>,
): Promise<readonly Ids[]> {
  const lines = text.split(/[\n\r]/u).filter((line) => line.trim() !== '');
  if (lines.length > tokens.length) return [tokens];
  const read: Ids[] = [];
  for (const line of lines) read.push(await idsOf(line));
  return read;
}

/** Full packs that the windows of one request may take together, if there are more than one. */
const FULL_PACKS = 4;

/** How many windows, `most` at most, stage B reads if a window and its choices have this many tokens; one at least. */
export function windowsThatFit(tokens: number, most: number, packTokens: number): number {
  return Math.min(most, Math.max(1, Math.floor((FULL_PACKS * packTokens) / tokens)));
}

/** Whether one run holds a whole window and the choices if they have this many tokens together. */
export function firstWindowFits(tokens: number, packTokens: number): boolean {
  return tokens <= packTokens;
}

/**
 * Which windows of a long text are read: `read` of them, or as many as the packs of one request have room for if the
 * choices are long; and the first one of the whole text if one run holds it and any of the choices that are read.
 * `carried`: the tokens of the instruction in each window, `choices`: those of each choice.
 */
export function planOf(
  carried: number,
  choices: readonly number[],
  { windows, best, packTokens }: Pick<TwoStageOptions, 'windows' | 'best' | 'packTokens'>,
): WindowPlan {
  const { premise, segment, read } = windows;
  const longest = [...choices].sort((a, b) => b - a).slice(0, best);
  const blocks = longest.reduce((sum, length) => sum + length + 1, 0);
  return {
    most: windowsThatFit(carried + segment + FRAME_TOKENS + blocks, read, packTokens),
    first: firstWindowFits(premise + blocks, packTokens),
  };
}
