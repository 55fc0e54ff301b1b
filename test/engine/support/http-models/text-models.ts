/**
 * Models that read texts, as a server has them: the tokenizer and the graph of the small packages, run by ONNX Runtime
 * one text at a time. `[SEP]` in a text is the token, as at servers that find special tokens in texts.
 */
import { Tokenizer } from '@huggingface/tokenizers';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { encoderGraph, entailmentGraph, TOKENIZER_DEFINITION, tokenId } from '../packages.ts';

/** Encodes a text. */
export interface SmallEncoder {
  /** The token ids of a text, framed by `[CLS]` and `[SEP]`. */
  ids(text: string): readonly number[];
  vector(ids: readonly number[]): Promise<readonly number[]>;
}

/** Scores a document for a query. */
export interface PairScorer {
  /** The token ids of a pair, `[CLS] query [SEP] document [SEP]`, and where the document begins. */
  pair(query: string, document: string): Pair;
  logit(pair: Pair): Promise<number>;
}

/** A tokenised pair. */
export interface Pair {
  readonly query: readonly number[];
  readonly document: readonly number[];
}

const CLS = tokenId('[CLS]');
const SEP = tokenId('[SEP]');
const tokenizer = new Tokenizer(TOKENIZER_DEFINITION, {});

/** The token ids of a text alone. */
function idsOf(text: string): readonly number[] {
  return text
    .split('[SEP]')
    .flatMap((part, i) => [...(i === 0 ? [] : [SEP]), ...tokenizer.encode(part, { add_special_tokens: false }).ids]);
}

/** The encoder of the package `tiny`, or another graph of its kind. */
export async function createEncoder(graph: Uint8Array = encoderGraph()): Promise<SmallEncoder> {
  const run = await createRun(graph, 'embedding');
  return {
    ids: (text) => [CLS, ...idsOf(text), SEP],
    vector: async (ids) => Array.from(await run(ids, ids.length)),
  };
}

/** The cross-encoder whose score is ten times the share of tokens that are `letter`. */
export async function createPairScorer(letter: string): Promise<PairScorer> {
  const run = await createRun(entailmentGraph(letter), 'logits');
  return {
    pair: (query, document) => ({ query: idsOf(query), document: idsOf(document) }),
    async logit({ query, document }) {
      const [entailed = Number.NaN, , contradicted = Number.NaN] = await run(
        [CLS, ...query, SEP, ...document, SEP],
        query.length + 2,
      );
      return entailed - contradicted;
    },
  };
}

/** Tokens of a pair as it is read. */
export function lengthOf({ query, document }: Pair): number {
  return query.length + document.length + 3;
}

/** Runs a graph over one row of ids; token type 1 begins at `typesFrom`. */
async function createRun(
  graph: Uint8Array,
  output: string,
): Promise<(ids: readonly number[], typesFrom: number) => Promise<Float32Array>> {
  const session = await InferenceSession.create(graph, { intraOpNumThreads: 1, interOpNumThreads: 1 });
  return async (ids, typesFrom) => {
    const inputs: Readonly<Record<string, () => BigInt64Array>> = {
      input_ids: () => BigInt64Array.from(ids, BigInt),
      attention_mask: () => new BigInt64Array(ids.length).fill(1n),
      token_type_ids: () => new BigInt64Array(ids.length).fill(1n, typesFrom),
    };
    const feeds = Object.fromEntries(
      session.inputNames.map((name) => {
        const data = inputs[name]?.();
        if (data === undefined) throw new Error(`the graph has an input ${name}`);
        return [name, new Tensor('int64', data, [1, ids.length])];
      }),
    );
    const found = (await session.run(feeds))[output];
    if (!(found?.data instanceof Float32Array)) throw new Error(`the graph has no float32 output ${output}`);
    return found.data.slice();
  };
}
