/**
 * The sequences of stage B: `[CLS] instruction [SEP] input [SEP]` and a block `[MASK] option` for each option.
 * Positions continue from the premise's length in every block, and block numbers let a token see only the premise and
 * its own block.
 */
import type { Tensor } from '../family.ts';

/** Ids of the tokens that the family places itself. */
export interface SpecialTokens {
  readonly cls: number;
  readonly sep: number;
  readonly mask: number;
  readonly unk: number;
}

/** Tokens that frame every premise: `[CLS]` and two `[SEP]`. */
export const FRAME_TOKENS = 3;

/** A text as token ids, without special tokens. */
export type Ids = readonly number[];

/** The inputs of one run over the premise and these options. */
export function packFeeds(instruction: Ids, input: Ids, options: readonly Ids[], special: SpecialTokens) {
  const { cls, sep, mask } = special;
  const ids = [cls, ...instruction, sep, ...input, sep];
  const premise = ids.length;
  const positions = Array.from(ids, (_, i) => i);
  const blocks = new Array<number>(premise).fill(0);
  const markers: number[] = [];
  for (const [i, option] of options.entries()) {
    markers.push(ids.length);
    ids.push(mask, ...option);
    for (let k = 0; k <= option.length; k++) {
      positions.push(premise + k);
      blocks.push(i + 1);
    }
  }
  return {
    input_ids: row(ids),
    position_ids: row(positions),
    block_ids: row(blocks),
    markers: { data: BigInt64Array.from(markers, BigInt), dims: [markers.length] },
  } satisfies Record<string, Tensor>;
}

/**
 * Splits options, in order, so that each part fits a run of `most` tokens with its premise of `premise` tokens; a part
 * has one at least.
 */
export function splitOptions(premise: number, options: readonly Ids[], most: number): readonly (readonly Ids[])[] {
  const parts: Ids[][] = [];
  let room = 0;
  for (const option of options) {
    if (parts.length === 0 || option.length + 1 > room) {
      parts.push([]);
      room = most - premise;
    }
    parts.at(-1)?.push(option);
    room -= option.length + 1;
  }
  return parts;
}

function row(values: readonly number[]): Tensor {
  return { data: BigInt64Array.from(values, BigInt), dims: [1, values.length] };
}
