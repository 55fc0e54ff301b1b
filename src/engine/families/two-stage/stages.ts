/**
 * The two graphs of a package: stage A makes vectors of texts, stage B scores of packs.
 *
 * A pack is `[CLS] instruction [SEP] input [SEP]` and a block `[MASK] option` for each option. Positions continue from
 * the premise's length in every block, and block numbers let a token see only the premise and its own block.
 */
import type { Graph, RunControl, Tensor } from '../family.ts';

/**
 * Prefixes of the names under which other vectors are kept in the cache of choices: no well-formed choice begins with
 * one.
 */
const NAME_OF = { instruction: '\ud800', silent: '\ud801' } as const;

/** Stage A: a text in, its vector of length 1 out, in one run. All methods reject with JobStopped. */
export class StageA {
  readonly #graph: Graph;
  readonly #special: SpecialTokens;

  constructor(graph: Graph, special: SpecialTokens) {
    this.#graph = graph;
    this.#special = special;
  }

  async encode(text: Ids, control: RunControl): Promise<Float32Array> {
    control.checkpoint();
    const ids = BigInt64Array.from([this.#special.cls, ...text, this.#special.sep], BigInt);
    const { embedding } = await this.#graph.run({ input_ids: { data: ids, dims: [1, ids.length] } });
    if (!(embedding?.data instanceof Float32Array)) throw new Error('stage A has no float32 output "embedding"');
    return embedding.data;
  }

  /** The vector of an instruction. Instructions recur, so it is kept like a choice's. */
  encodeInstruction(instruction: Ids, control: RunControl): Promise<Float32Array> {
    const name = `${NAME_OF.instruction}${instruction.join(' ')}`;
    return kept(name, control, () => this.encode(instruction, control));
  }

  dispose(): Promise<void> {
    return this.#graph.dispose();
  }
}

/**
 * Stage B: a question, a text and the blocks of choices in, a score for each choice out. All methods reject with
 * JobStopped.
 */
export class StageB {
  readonly #graph: Graph;
  readonly #special: SpecialTokens;
  readonly #packTokens: number;

  /** `packTokens`: the most tokens of a run. */
  constructor(graph: Graph, special: SpecialTokens, packTokens: number) {
    this.#graph = graph;
    this.#special = special;
    this.#packTokens = packTokens;
  }

  /** One run, whose choices fit a pack. */
  async read(instruction: Ids, text: Ids, blocks: readonly Ids[], control: RunControl): Promise<Float32Array> {
    control.checkpoint();
    const { scores } = await this.#graph.run(packFeeds(instruction, text, blocks, this.#special));
    if (!(scores?.data instanceof Float32Array)) throw new Error('stage B has no float32 output "scores"');
    return scores.data;
  }

  /** As many runs as the choices need. */
  async readAll(instruction: Ids, text: Ids, blocks: readonly Ids[], control: RunControl): Promise<Float32Array> {
    const found: number[] = [];
    for (const part of splitOptions(instruction.length + text.length + FRAME_TOKENS, blocks, this.#packTokens)) {
      found.push(...(await this.read(instruction, text, part, control)));
    }
    return Float32Array.from(found);
  }

  /** The scores for an empty text. The same question and choices recur, so the scores are kept. */
  readSilent(instruction: Ids, blocks: readonly Ids[], control: RunControl): Promise<Float32Array> {
    const name = `${NAME_OF.silent}${[instruction, ...blocks].map((ids) => ids.join(' ')).join()}`;
    return kept(name, control, () => this.readAll(instruction, [], blocks, control));
  }

  dispose(): Promise<void> {
    return this.#graph.dispose();
  }
}

async function kept(name: string, { vectors }: RunControl, make: () => Promise<Float32Array>): Promise<Float32Array> {
  const found = vectors.get(name) ?? (await make());
  vectors.set(name, found);
  return found;
}

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
