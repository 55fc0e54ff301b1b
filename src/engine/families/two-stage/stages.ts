/** The two graphs of a package: stage A makes vectors of texts, stage B scores of packs. */
import type { Graph, RunControl } from '../family.ts';
import { FRAME_TOKENS, type Ids, packFeeds, type SpecialTokens, splitOptions } from './packs.ts';

/**
 * Prefixes of the names under which other vectors are kept in the cache of choices: no well-formed choice begins with
 * one.
 */
const NAME_OF = { instruction: '\ud800', silent: '\ud801' } as const;

/** Stage A: a text in, its vector of length 1 out, in one run. All methods reject with JobStopped. */
export interface StageA {
  encode(text: Ids, control: RunControl): Promise<Float32Array>;
  /** The vector of an instruction. Instructions recur, so it is kept like a choice's. */
  encodeInstruction(instruction: Ids, control: RunControl): Promise<Float32Array>;
}

/** Stage A over its graph. */
export function createStageA(graph: Graph, special: SpecialTokens): StageA {
  const encode = async (text: Ids, control: RunControl): Promise<Float32Array> => {
    control.checkpoint();
    const ids = BigInt64Array.from([special.cls, ...text, special.sep], BigInt);
    const { embedding } = await graph.run({ input_ids: { data: ids, dims: [1, ids.length] } });
    if (!(embedding?.data instanceof Float32Array)) throw new Error('stage A has no float32 output "embedding"');
    return embedding.data;
  };
  return {
    encode,
    encodeInstruction: (instruction, control) =>
      kept(`${NAME_OF.instruction}${instruction.join(' ')}`, control, () => encode(instruction, control)),
  };
}

/**
 * Stage B: a question, a text and the blocks of choices in, a score for each choice out. All methods reject with
 * JobStopped.
 */
export interface StageB {
  /** One run, whose choices fit a pack. */
  read(instruction: Ids, text: Ids, blocks: readonly Ids[], control: RunControl): Promise<Float32Array>;
  /** As many runs as the choices need. */
  readAll(instruction: Ids, text: Ids, blocks: readonly Ids[], control: RunControl): Promise<Float32Array>;
  /** The scores for an empty text. The same question and choices recur, so the scores are kept. */
  readSilent(instruction: Ids, blocks: readonly Ids[], control: RunControl): Promise<Float32Array>;
}

/** Stage B over its graph. `packTokens`: the most tokens of a run. */
export function createStageB(graph: Graph, special: SpecialTokens, packTokens: number): StageB {
  const read: StageB['read'] = async (instruction, text, blocks, control) => {
    control.checkpoint();
    const { scores } = await graph.run(packFeeds(instruction, text, blocks, special));
    if (!(scores?.data instanceof Float32Array)) throw new Error('stage B has no float32 output "scores"');
    return scores.data;
  };
  const readAll: StageB['readAll'] = async (instruction, text, blocks, control) => {
    const found: number[] = [];
    for (const part of splitOptions(instruction.length + text.length + FRAME_TOKENS, blocks, packTokens)) {
      found.push(...(await read(instruction, text, part, control)));
    }
    return Float32Array.from(found);
  };
  return {
    read,
    readAll,
    readSilent: (instruction, blocks, control) =>
      kept(`${NAME_OF.silent}${[instruction, ...blocks].map((ids) => ids.join(' ')).join()}`, control, () =>
        readAll(instruction, [], blocks, control),
      ),
  };
}

async function kept(name: string, { vectors }: RunControl, make: () => Promise<Float32Array>): Promise<Float32Array> {
  const found = vectors.get(name) ?? (await make());
  vectors.set(name, found);
  return found;
}
