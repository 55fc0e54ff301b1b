/**
 * `bi-encoder`: premise and choices are encoded one by one, and a choice's logit is the cosine of its vector with the premise's, divided
 * by the temperature. The premise's vector mixes that of the input alone with that of instruction and input:
 *
 *     premise = normalise((1 - joint_weight) · v([CLS] input [SEP]) + joint_weight · v([CLS] instruction [SEP] input [SEP]))
 *
 * options: { "graph", "tokenizer": file names, "joint_weight": 0…1, "temperature": see temperature.ts, "special_tokens": { "cls", "sep" } }
 * graph: `input_ids` int64 [1, tokens] → `embedding` float32 [1, width], pooled and normalised.
 */
import { type CostProfile, measureCurve } from '../cost-profile.ts';
import { createChecker } from '../packages/checker.ts';
import { createChoiceEncoder } from './choice-encoder.ts';
import { createChoiceTokens } from './choice-tokens.ts';
import { type Family, type FamilyParts, InvalidOptions, type RunControl, unhindered } from './family.ts';
import { dot, softmax } from './probabilities.ts';
import { readTemperature, type Temperature } from './temperature.ts';
import { mixed } from './vectors.ts';

interface Options {
  readonly graph: string;
  readonly tokenizer: string;
  readonly jointWeight: number;
  readonly temperature: Temperature;
  readonly cls: number;
  readonly sep: number;
}

/** Loads a package of this family. Throws InvalidOptions, or what loading its files throws. */
export async function loadBiEncoder(parts: FamilyParts): Promise<Family> {
  const { limits } = parts;
  const options = readOptions(parts.options);
  const tokenizer = await parts.tokenizer(options.tokenizer);
  const graph = await parts.graph(options.graph);

  const encode = async (segments: readonly (readonly number[])[], control: RunControl): Promise<Float32Array> => {
    control.checkpoint();
    const ids = sequence(options, segments);
    const feeds = { input_ids: { data: ids, dims: [1, ids.length] } };
    const { embedding } = await graph.run(feeds);
    if (!(embedding?.data instanceof Float32Array)) throw new Error('the graph has no float32 output "embedding"');
    return embedding.data;
  };

  const encodePremise = async (
    input: readonly number[],
    instruction: readonly number[],
    control: RunControl,
  ): Promise<Float32Array> => {
    const { jointWeight } = options;
    if (jointWeight === 0) return await encode([input], control);
    const joint = await encode([instruction, input], control);
    if (jointWeight === 1) return joint;
    return mixed(await encode([input], control), joint, jointWeight);
  };

  const encodeChoices = createChoiceEncoder(createChoiceTokens(tokenizer, limits.candidateTokens), (ids, control) =>
    encode([ids], control),
  );

  return {
    tokenizer,
    async score({ input, instruction }, choices, control) {
      const { vectors: encodedChoices, encoded } = await encodeChoices(choices, control);
      const premise = await encodePremise(input, instruction, control);
      const temperature = options.temperature(choices.length);
      const logits = Float64Array.from(encodedChoices, (vector) => dot(premise, vector) / temperature);
      return { probabilities: softmax(logits), encoded };
    },
    async prepare(choices, control) {
      await encodeChoices(choices, control);
    },
    async profile(): Promise<CostProfile> {
      const ids = (tokens: number): number[] => new Array<number>(tokens).fill(options.sep);
      const { inputTokens, candidateTokens } = limits;
      return {
        // All tokens in the input: the costliest way to spread them over the two texts.
        premise: await measureCurve([1, Math.ceil(inputTokens / 4), inputTokens], (tokens) =>
          encodePremise(ids(tokens), [], unhindered),
        ),
        choice: await measureCurve([1, candidateTokens], async (tokens) => encode([ids(tokens)], unhindered)),
        choiceReadsPremise: false,
        choicesCached: true,
      };
    },
    dispose: () => graph.dispose(),
  };
}

function readOptions(raw: unknown): Options {
  const problems: string[] = [];
  const fields = createChecker(raw, 'options', problems);
  const special = fields.object('special_tokens');
  const options = {
    graph: fields.text('graph', /./u),
    tokenizer: fields.text('tokenizer', /./u),
    jointWeight: fields.number('joint_weight', 0, 1),
    temperature: readTemperature(fields, raw),
    cls: special.integer('cls', 0, 2 ** 31),
    sep: special.integer('sep', 0, 2 ** 31),
  };
  if (problems.length > 0) throw new InvalidOptions(problems);
  return options;
}

/** `[CLS]`, and each segment with a `[SEP]` after it. */
function sequence({ cls, sep }: Options, segments: readonly (readonly number[])[]): BigInt64Array {
  const ids = new BigInt64Array(segments.reduce((sum, { length }) => sum + length + 1, 1));
  let place = 0;
  ids[place++] = BigInt(cls);
  for (const segment of segments) {
    for (const id of segment) ids[place++] = BigInt(id);
    ids[place++] = BigInt(sep);
  }
  return ids;
}
