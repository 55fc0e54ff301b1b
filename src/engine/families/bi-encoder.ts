/**
 * `bi-encoder`: premise and choices are encoded one by one, and a choice's logit is the cosine of its vector with the
 * premise's, divided by the temperature. The premise's vector mixes that of the input alone with that of instruction
 * and input:
 *
 *     premise = normalise((1 - joint_weight) · v([CLS] input [SEP])
 *                         + joint_weight · v([CLS] instruction [SEP] input [SEP]))
 *
 * options: { "graph", "tokenizer": file names, "joint_weight": 0…1, "temperature": see temperature.ts,
 *   "special_tokens": { "cls", "sep" },
 *   "pooling": "none" | "mean" | "cls", "output": a name, "normalise": boolean }
 * graph: `input_ids`, and `attention_mask`, `token_type_ids` and `position_ids` if it has them, int64 [1, tokens] →
 * `output`, float32.
 *
 * The last three options may be left out. `pooling` says what the output is: `none`, the default, one vector [1,
 * width]; `mean` and `cls`, a vector for each token [1, tokens, width], of which the mean or the first one is taken.
 * `output` is `embedding` by default, or `last_hidden_state` where vectors are pooled. `normalise` brings the vector to
 * length 1: by default where vectors are pooled here, while a graph that pools is assumed to normalise as well.
 */
import type { CostProfile } from '../cost-profile.ts';
import { type Checker, readOptions } from '../packages/manifest.ts';
import { softmax } from '../tempered.ts';
import { encodeChoices, tokensOfChoices } from './choice-encoder.ts';
import { type Family, type FamilyParts, type RunControl, unhindered } from './family.ts';
import { checkLength, createSentenceEncoder, type Pooling } from './sentence-encoder.ts';
import { type EncoderOptions, measureCurve, readEncoderOptions } from './temperature.ts';
import { dot, mixed } from './vectors.ts';

interface Options extends EncoderOptions {
  readonly jointWeight: number;
  readonly pooling: Pooling;
  readonly output: string;
  readonly normalise: boolean;
}

/** The output that is read if the options name none. */
const OUTPUTS: Readonly<Record<Pooling, string>> = {
  none: 'embedding',
  mean: 'last_hidden_state',
  cls: 'last_hidden_state',
};

/** Loads a package of this family. Throws InvalidOptions, or what loading its files throws. */
export async function loadBiEncoder(parts: FamilyParts): Promise<Family> {
  const { limits } = parts;
  const options = readOptions(parts.options, optionsOf);
  const tokenizer = await parts.tokenizer(options.tokenizer);
  const graph = await parts.graph(options.graph);

  const encode = createSentenceEncoder(graph, options);

  const encodePremise = async (
    input: readonly number[],
    instruction: readonly number[],
    control: RunControl,
  ): Promise<Float32Array> => {
    const { jointWeight } = options;
    if (jointWeight === 0) return await encode(framed(options, [input]), control);
    const joint = await encode(framed(options, [instruction, input]), control);
    if (jointWeight === 1) return joint;
    return mixed(await encode(framed(options, [input]), control), joint, jointWeight);
  };

  const vectorsOf = (choices: readonly string[], control: RunControl) =>
    encodeChoices(
      choices,
      control.vectors,
      (missing) => tokensOfChoices(tokenizer, missing, limits.candidateTokens, control),
      (ids) => encode(framed(options, [ids]), control),
    );

  return {
    tokenizer,
    async score({ input, instruction }, choices, control) {
      const { vectors: encodedChoices, ...reading } = await vectorsOf(choices, control);
      const premise = await encodePremise(input, instruction, control);
      const temperature = options.temperature(choices.length);
      const logits = Float64Array.from(encodedChoices, (vector) => dot(premise, vector) / temperature);
      return { probabilities: softmax(logits), vector: premise, ...reading };
    },
    async prepare(choices, control) {
      await vectorsOf(choices, control);
    },
    async profile(): Promise<CostProfile> {
      const ids = (tokens: number): number[] => new Array<number>(tokens).fill(options.sep);
      const { inputTokens, candidateTokens } = limits;
      const run = (tokens: number) => encode(framed(options, [ids(tokens)]), unhindered);
      // The longest premise has three special tokens, or two where the instruction is not read; a choice has two.
      const beside = options.jointWeight === 0 ? 2 : 3;
      await checkLength(run, 2, [
        { limit: 'limits.input_tokens', tokens: inputTokens, beside },
        { limit: 'limits.candidate_tokens', tokens: candidateTokens, beside: 2 },
      ]);
      return {
        // All tokens in the input: the costliest way to spread them over the two texts.
        premise: await measureCurve([1, Math.ceil(inputTokens / 4), inputTokens], (tokens) =>
          encodePremise(ids(tokens), [], unhindered),
        ),
        choice: await measureCurve([1, candidateTokens], run),
        choiceReadsPremise: false,
        choicesCached: true,
      };
    },
    dispose: () => graph.dispose(),
  };
}

function optionsOf(fields: Checker): Options {
  const pooling: Pooling = fields.oneOf('pooling', ['none', 'mean', 'cls'], 'none');
  return {
    ...readEncoderOptions(fields),
    jointWeight: fields.number('joint_weight', 0, 1),
    pooling,
    output: fields.text('output', /./u, OUTPUTS[pooling]),
    normalise: fields.flag('normalise', pooling !== 'none'),
  };
}

/** `[CLS]`, and each segment with a `[SEP]` after it. */
function framed({ cls, sep }: Options, segments: readonly (readonly number[])[]): BigInt64Array {
  const ids = new BigInt64Array(segments.reduce((sum, { length }) => sum + length + 1, 1));
  let place = 0;
  ids[place++] = BigInt(cls);
  for (const segment of segments) {
    for (const id of segment) ids[place++] = BigInt(id);
    ids[place++] = BigInt(sep);
  }
  return ids;
}
