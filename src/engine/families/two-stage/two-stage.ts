/**
 * `two-stage`: stage A encodes every text alone and compares vectors; stage B reads the question, the text and the best choices together; a
 * fitted rule says how much each is heard. What a package holds and how it decides is laid down in `training/two_stage.md`.
 */
import { type CostProfile, measureCurve } from '../../cost-profile.ts';
import { boundedTokens } from '../bounded-tokens.ts';
import { createChoiceEncoder } from '../choice-encoder.ts';
import { createChoiceTokens } from '../choice-tokens.ts';
import {
  type Family,
  type FamilyParts,
  type Premise,
  pauseOf,
  type RunControl,
  type TextTokenizer,
  unhindered,
} from '../family.ts';
import { dot, softmax } from '../probabilities.ts';
import { middle } from '../vectors.ts';
import { readFinder } from './finder.ts';
import { readTwoStageOptions } from './options.ts';
import { type Ids, packFeeds, splitOptions } from './packs.ts';
import {
  closenessOf,
  composeDistribution,
  leaningOf,
  type RequestFacts,
  residualsAmong,
  stackLogits,
  verdictsAmong,
} from './stack.ts';
import { createTextRules, readSymbols } from './text-rules.ts';
import {
  fitsOneWindow,
  fullPacks,
  highest,
  holdsFirst,
  linesOf,
  readableWindows,
  splitPremise,
  type Windows,
} from './windows.ts';

/** One window that stage B reads: its tokens, its cosines with all choices and with the instruction, its relevance. */
interface ReadWindow {
  readonly text: Ids;
  readonly a: Float64Array;
  readonly about: number;
  readonly relevance: number;
}

/** Which windows of a premise stage B reads: so many of the most relevant, and whether the first one of the whole text. */
interface Reading {
  readonly most: number;
  readonly first: boolean;
}

/** Loads a package of this family. Throws InvalidOptions, or what loading its files throws. */
export async function loadTwoStage(parts: FamilyParts): Promise<Family> {
  const { limits } = parts;
  const options = readTwoStageOptions(parts.options);
  const { special, windows, stack } = options;
  const words = await parts.tokenizer(options.tokenizer);
  const rules = createTextRules(readSymbols(await parts.json(options.symbols)));
  const relevanceOf = readFinder(await parts.json(windows.finder));
  const stageA = await parts.graph(options.stageA);
  const stageB = await parts.graph(options.stageB, options.stageBWeights);

  const tokenizer: TextTokenizer = {
    ids: (text) => words.ids(rules.plain(text)),
    reader() {
      const reader = words.reader();
      return { read: (piece) => reader.read(rules.plain(piece)), end: () => reader.end() };
    },
    unreadShare: words.unreadShare,
  };
  /** A line of a text that is within the limit as a whole. */
  const lineIds = async (line: string, control: RunControl): Promise<Ids> => {
    const found = await boundedTokens(tokenizer, line, limits.inputTokens, pauseOf(control));
    return found.kind === 'tokens' ? found.ids : [];
  };

  const readChoices = createChoiceTokens(tokenizer, limits.candidateTokens, rules.words);
  // A choice without any token is one that is unknown.
  const choicesIds = async (choices: readonly string[], control: RunControl): Promise<readonly Ids[]> => {
    return (await readChoices(choices, control)).map((ids) => (ids.length > 0 ? ids : [special.unk]));
  };

  const encode = async (text: Ids, control: RunControl): Promise<Float32Array> => {
    control.checkpoint();
    const ids = BigInt64Array.from([special.cls, ...text, special.sep], BigInt);
    const { embedding } = await stageA.run({ input_ids: { data: ids, dims: [1, ids.length] } });
    if (!(embedding?.data instanceof Float32Array)) throw new Error('stage A has no float32 output "embedding"');
    return embedding.data;
  };

  const usesAbout = stack.features.includes('about');
  const verdicts = stack.verdicts.map((word) => tokenizer.ids(word));
  const negation = tokenizer.ids(stack.negation);
  const residuals = stack.residuals.map((words) => tokenizer.ids(words));

  /** The instruction's vector. Instructions come again and again, so it is cached like a choice's, under a name that no choice can have. */
  const encodeInstruction = async (instruction: Ids, control: RunControl): Promise<Float32Array> => {
    const name = `\ud800${instruction.join(' ')}`;
    const { vectors } = control;
    const found = vectors.get(name) ?? (await encode(instruction, control));
    vectors.set(name, found);
    return found;
  };

  const read = async (
    instruction: Ids,
    text: Ids,
    choices: readonly Ids[],
    control: RunControl,
  ): Promise<Float32Array> => {
    control.checkpoint();
    const { scores } = await stageB.run(packFeeds(instruction, text, choices, special));
    if (!(scores?.data instanceof Float32Array)) throw new Error('stage B has no float32 output "scores"');
    return scores.data;
  };

  /** Stage B's scores of all blocks, in as many packs as they need. */
  const readAll = async (instruction: Ids, text: Ids, blocks: readonly Ids[], control: RunControl) => {
    const found: number[] = [];
    for (const part of splitOptions(instruction.length + text.length + 3, blocks, options.packTokens)) {
      found.push(...(await read(instruction, text, part, control)));
    }
    return Float32Array.from(found);
  };

  /** The scores for an empty text. The same question and choices come again and again, so they are cached, under a name that no choice can have. */
  const readSilent = async (instruction: Ids, blocks: readonly Ids[], control: RunControl): Promise<Float32Array> => {
    const name = `\ud801${[instruction, ...blocks].map((ids) => ids.join(' ')).join()}`;
    const { vectors } = control;
    const found = vectors.get(name) ?? (await readAll(instruction, [], blocks, control));
    vectors.set(name, found);
    return found;
  };

  const encodeChoices = createChoiceEncoder(choicesIds, encode);

  /** The windows for stage B: the only one, or the `most` most relevant in text order and the `first` one of the whole text. */
  const chooseWindows = async (
    { instruction, windows: texts }: Windows,
    { most, first }: Reading,
    choiceVectors: readonly Float32Array[],
    control: RunControl,
  ): Promise<{ readonly chosen: readonly ReadWindow[]; readonly vector: Float32Array }> => {
    const cosinesOf = (text: Float32Array) => Float64Array.from(choiceVectors, (vector) => dot(text, vector));
    const question = texts.length > 1 || usesAbout ? await encodeInstruction(instruction, control) : undefined;
    const aboutOf = (text: Float32Array) => (question === undefined ? 0 : dot(text, question));
    const segments: Float32Array[] = [];
    for (const text of texts) segments.push(await encode(text, control));
    const cosines = segments.map(cosinesOf);
    const relevance =
      texts.length === 1 || question === undefined ? [0] : relevanceOf({ segments, instruction: question, cosines });
    const chosen: ReadWindow[] = highest(relevance, most).map((w) => ({
      text: texts[w] as Ids,
      a: cosines[w] as Float64Array,
      about: aboutOf(segments[w] as Float32Array),
      relevance: relevance[w] as number,
    }));
    if (first) {
      const text = texts.flat().slice(0, windows.premise - 3 - instruction.length);
      const vector = await encode(text, control);
      const mean = relevance.reduce((sum, value) => sum + value, 0) / relevance.length;
      chosen.push({ text, a: cosinesOf(vector), about: aboutOf(vector), relevance: mean + windows.firstLead });
    }
    return { chosen, vector: segments.length === 1 ? (segments[0] as Float32Array) : middle(segments) };
  };

  const readingOf = async (premise: Windows, choices: readonly string[], control: RunControl): Promise<Reading> => {
    if (premise.windows.length === 1) return { most: 1, first: false };
    const lengths = (await choicesIds(choices, control)).map((ids) => ids.length);
    return {
      most: readableWindows(premise.instruction.length, lengths, options),
      first: holdsFirst(lengths, options),
    };
  };

  const score = async ({ instruction, input, inputText }: Premise, choices: readonly string[], control: RunControl) => {
    const { vectors: choiceVectors, encoded } = await encodeChoices(choices, control);
    const fits = fitsOneWindow(instruction.length + input.length, windows);
    const lines = fits ? [input] : await linesOf(inputText, input, (line) => lineIds(line, control));
    const premise = splitPremise(instruction, lines, windows);
    const reading = await readingOf(premise, choices, control);
    const { chosen, vector } = await chooseWindows(premise, reading, choiceVectors, control);
    const a = Float64Array.from(choices, (_, i) => Math.max(...chosen.map((window) => window.a[i] as number)));
    const best = highest(a, options.best);
    const blocks = await choicesIds(
      best.map((place) => choices[place] as string),
      control,
    );
    const residual = residualsAmong(blocks, residuals);
    const facts: RequestFacts = {
      choices: choices.length,
      closeness: closenessOf(best.map((place) => choiceVectors[place] as Float32Array)),
      optionTokens: blocks.reduce((sum, block) => sum + block.length, 0) / blocks.length,
      verdicts: verdicts.length === 0 ? 0 : verdictsAmong(blocks, verdicts, negation),
      residual: residual.includes(true),
    };
    // Of more choices than stage B reads it would be others for every text, so nothing could be kept.
    const leans = stack.lean > 0 && choices.length <= options.best;
    const leaning = leans ? leaningOf(await readSilent(premise.instruction, blocks, control), residual) : undefined;
    const logits: Float64Array[] = [];
    for (const window of chosen) {
      const scores = await readAll(premise.instruction, window.text, blocks, control);
      const b = Float64Array.from(scores, (score, i) => score - stack.lean * (leaning?.[i] ?? 0));
      const a = Float64Array.from(best, (place) => window.a[place] as number);
      logits.push(stackLogits(stack, { a, b, about: window.about }, facts));
    }
    const z = joined(
      logits,
      chosen.map(({ relevance }) => relevance),
    );
    return { probabilities: composeDistribution(stack, a, best, z), vector, encoded };
  };

  /** z of the windows together: each counts by its confidence and its relevance. */
  const joined = (logits: readonly Float64Array[], relevance: readonly number[]): Float64Array => {
    const [only] = logits;
    if (only !== undefined && logits.length === 1) return only;
    const weights = softmax(
      Float64Array.from(logits, (z, w) => {
        return windows.kappaConfidence * Math.max(...softmax(z)) + windows.kappaRelevance * (relevance[w] as number);
      }),
    );
    return Float64Array.from(only ?? [], (_, i) => {
      return logits.reduce((sum, z, w) => sum + (weights[w] as number) * (z[i] as number), 0);
    });
  };

  return {
    tokenizer,
    score,
    async prepare(choices, control) {
      await encodeChoices(choices, control);
    },
    async profile(): Promise<CostProfile> {
      const ids = (tokens: number): Ids => new Array<number>(tokens).fill(special.sep);
      const encoding = await measureCurve([1, windows.least, windows.segment, windows.premise - 2], (tokens) =>
        encode(ids(tokens), unhindered),
      );
      const [, shortest = 0, longest = 0, full = 0] = encoding.map(([, cost]) => cost);
      // Beyond one window the text is encoded sentence by sentence, and the instruction once: short ones are many, long ones few.
      const inSegments = (tokens: number): number => {
        const few = Math.ceil(tokens / windows.segment) * longest;
        return longest + Math.max(few, Math.ceil(tokens / windows.least) * shortest);
      };
      const cut = windows.premise - 2;
      const whole = Math.max(cut + 1, limits.inputTokens);
      const longestPremise = windows.premise - 3;
      const longestChoice = limits.candidateTokens;
      // Half a small run is premise, as with a few choices; the largest has a whole window and the longest choices, so that a graph without
      // positions for them fails here.
      const packed = await measureCurve([16, options.packTokens / 4, options.packTokens], (tokens) => {
        const premise = Math.min(longestPremise, Math.floor(tokens / 2) - 3);
        const room = tokens - premise - 3;
        const blocks = Math.max(1, Math.floor(room / (longestChoice + 1)));
        const block = ids(Math.min(longestChoice, Math.floor(room / blocks) - 1));
        return read([], ids(premise), new Array<Ids>(blocks).fill(block), unhindered);
      });
      return {
        premise: [...encoding.slice(0, 1), [cut - 1, full], [cut, inSegments(cut)], [whole, inSegments(whole)]],
        choice: await measureCurve([1, limits.candidateTokens], (tokens) => encode(ids(tokens), unhindered)),
        choiceReadsPremise: false,
        choicesCached: true,
        packed: {
          run: packed,
          tokens: options.packTokens,
          best: options.best,
          window: windows.premise,
          segment: windows.carriedInstruction + windows.segment + 3,
          windows: windows.read,
          fullPacks,
          silent: stack.lean > 0 ? windows.carriedInstruction : 0,
        },
      };
    },
    async dispose() {
      await stageA.dispose();
      await stageB.dispose();
    },
  };
}
