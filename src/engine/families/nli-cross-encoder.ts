/**
 * `nli-cross-encoder`: each choice fills a hypothesis, and its logit is how much more the model finds it entailed by
 * the input than contradicted. Every pair is a run of its own: `[CLS] input [SEP] hypothesis [SEP]`.
 *
 * options: { "graph", "tokenizer": file names, "hypothesis": a text with `{choice}` in it and perhaps `{instruction}`,
 *   "entailment": and, optionally, "contradiction": places in the output, "temperature": see temperature.ts,
 *   "special_tokens": { "cls", "sep" } }
 * graph: `input_ids`, and `attention_mask`, `token_type_ids` and `position_ids` if it has them, int64 [1, tokens] →
 * `logits` float32 [1, classes].
 *
 * Without `{instruction}` in the hypothesis the instruction is not read.
 */
import type { CostProfile } from '../cost-profile.ts';
import { type Checker, readOptions } from '../packages/manifest.ts';
import { softmax } from '../tempered.ts';
import { boundedTokens } from '../text/bounded-tokens.ts';
import { meanTokens, tokensOfChoices } from './choice-encoder.ts';
import type { Family, FamilyParts, Graph, RunControl } from './family.ts';
import { checkLength, feedsOf } from './sentence-encoder.ts';
import { type EncoderOptions, measureCurve, readEncoderOptions } from './temperature.ts';

interface Options extends EncoderOptions {
  readonly hypothesis: string;
  readonly entailment: number;
  readonly contradiction: number | undefined;
}

/** The most characters of an instruction that is tokenised together with each choice. */
const LONG_INSTRUCTION = 4096;

/** Loads a package of this family. Throws InvalidOptions, or what loading its files throws. */
export async function loadNliCrossEncoder(parts: FamilyParts): Promise<Family> {
  const { limits } = parts;
  const options = readOptions(parts.options, optionsOf);
  const tokenizer = await parts.tokenizer(options.tokenizer);
  const graph = await parts.graph(options.graph);

  const entailment = createEntailment(graph, options);
  const readChoices = (choices: readonly string[], control: RunControl) =>
    tokensOfChoices(tokenizer, choices, limits.candidateTokens, control);

  /**
   * The tokens of each choice's hypothesis. A long instruction is read once, apart from the choices, and not once for
   * every choice.
   */
  const hypotheses = async (
    instruction: string,
    control: RunControl,
  ): Promise<(choice: string) => readonly number[]> => {
    const { hypothesis } = options;
    if (instruction.length <= LONG_INSTRUCTION)
      return (choice) => tokenizer.ids(fillTemplate(hypothesis, { choice, instruction }));
    const parts: (readonly number[])[] = [];
    for (const part of hypothesis.split('{choice}')) {
      const text = fillTemplate(part, { choice: '', instruction });
      const read = await boundedTokens(tokenizer, text, Number.POSITIVE_INFINITY, control.pause);
      parts.push(read.kind === 'tokens' ? read.ids : []);
    }
    return (choice) => {
      const own = tokenizer.ids(choice);
      return parts.flatMap((part, i) => (i === 0 ? part : [...own, ...part]));
    };
  };

  return {
    tokenizer,
    async score({ input, instructionText }, choices, control: RunControl) {
      const read = await readChoices(choices, control);
      const temperature = options.temperature(choices.length);
      const logits = new Float64Array(choices.length);
      const idsOf = await hypotheses(instructionText, control);
      for (const [i, choice] of choices.entries()) {
        control.checkpoint();
        logits[i] = (await entailment(input, idsOf(choice))) / temperature;
      }
      return { probabilities: softmax(logits), encoded: choices.length, ...meanTokens(read) };
    },
    async prepare(choices, control) {
      await readChoices(choices, control);
    },
    async profile(): Promise<CostProfile> {
      const ids = (tokens: number): number[] => new Array<number>(tokens).fill(options.sep);
      const frame = tokenizer.ids(fillTemplate(options.hypothesis, { choice: '', instruction: '' }));
      const most = limits.inputTokens + limits.candidateTokens;
      const run = (tokens: number): Promise<number> => entailment(ids(tokens), frame);
      // [CLS] and two [SEP] stand in every run.
      const beside = frame.length + 3;
      await checkLength(run, beside, [
        { limit: 'limits.input_tokens + limits.candidate_tokens', tokens: most, beside },
      ]);
      return {
        premise: [],
        choice: await measureCurve([2, Math.ceil(most / 3), most], run),
        choiceReadsPremise: true,
        choicesCached: false,
      };
    },
    dispose: () => graph.dispose(),
  };
}

/** One run over an input and a hypothesis: how much more it is entailed than contradicted. */
type Entailment = (input: readonly number[], hypothesis: readonly number[]) => Promise<number>;

function createEntailment(graph: Graph, options: Options): Entailment {
  return async (input, hypothesis) => {
    const { cls, sep } = options;
    const ids = BigInt64Array.from([cls, ...input, sep, ...hypothesis, sep], BigInt);
    const { logits } = await graph.run(feedsOf(graph, ids, input.length + 2));
    const entailed = logits?.data[options.entailment];
    const contradicted = options.contradiction === undefined ? 0 : logits?.data[options.contradiction];
    if (typeof entailed !== 'number' || typeof contradicted !== 'number') {
      throw new Error('the graph has no float32 output "logits" with the classes that the options name');
    }
    return entailed - contradicted;
  };
}

/**
 * Puts values where the template has `{name}`. A value is taken literally, whatever it holds; an unknown name stays as
 * it is.
 */
export function fillTemplate(template: string, values: Readonly<Record<'choice' | 'instruction', string>>): string {
  return template.replaceAll(/\{(choice|instruction)\}/g, (_, name: keyof typeof values) => values[name]);
}

function optionsOf(fields: Checker): Options {
  return {
    ...readEncoderOptions(fields),
    hypothesis: fields.text('hypothesis', /\{choice\}/),
    entailment: fields.integer('entailment', 0, 1000),
    contradiction: fields.has('contradiction') ? fields.integer('contradiction', 0, 1000) : undefined,
  };
}
