/**
 * `two-stage`: stage A encodes every text alone and compares vectors; stage B reads the question, the text and the best
 * choices together; a fitted rule weighs the two. `training/two_stage.md` specifies what a package holds and how it
 * decides.
 */

import { readOptions } from '../../packages/manifest.ts';
import { softmax } from '../../tempered.ts';
import { boundedTokens } from '../../text/bounded-tokens.ts';
import { createRewritingReader } from '../../text/readers.ts';
import type { TextTokenizer } from '../../text/tokenizer.ts';
import { type EncodedChoices, encodeChoices, tokensOfChoices } from '../choice-encoder.ts';
import type { Family, FamilyParts, FamilyScores, Premise, RunControl } from '../family.ts';
import { dot, highest, middle } from '../vectors.ts';
import { type Finder, plainText, readFinder, readSymbols, wordsOf } from './finder.ts';
import { readTwoStageOptions, type TwoStageOptions } from './options.ts';
import { measureTwoStage } from './profile.ts';
import {
  closenessOf,
  composeDistribution,
  leaningOf,
  type RequestFacts,
  residualsAmong,
  scaleStepsAmong,
  stackLogits,
  verdictsAmong,
} from './stack.ts';
import { FRAME_TOKENS, type Ids, StageA, StageB } from './stages.ts';
import { fitsOneWindow, linesOf, planOf, splitPremise, type WindowPlan, type Windows } from './windows.ts';

/** One window that stage B reads: its tokens, its cosines with all choices and with the instruction, its relevance. */
interface ReadWindow {
  readonly text: Ids;
  readonly a: Float64Array;
  readonly about: number;
  readonly relevance: number;
}

/** The windows that stage B reads, and the vector of the whole text. */
interface ChosenWindows {
  readonly chosen: readonly ReadWindow[];
  readonly vector: Float32Array;
}

/** The parts of a package that decisions are made with. */
interface TwoStageParts {
  readonly options: TwoStageOptions;
  readonly limits: FamilyParts['limits'];
  readonly tokenizer: TextTokenizer;
  readonly relevanceOf: Finder;
  readonly stageA: StageA;
  readonly stageB: StageB;
}

/** Loads a package of this family. Throws InvalidOptions, or what loading its files throws. */
export async function loadTwoStage(parts: FamilyParts): Promise<Family> {
  const options = readOptions(parts.options, readTwoStageOptions);
  const words = await parts.tokenizer(options.tokenizer);
  const symbols = readSymbols(await parts.json(options.symbols));
  const relevanceOf = readFinder(await parts.json(options.windows.finder));
  const stageA = new StageA(await parts.graph(options.stageA), options.special);
  const graphB = await parts.graph(options.stageB, options.stageBWeights);
  return new TwoStage({
    options,
    limits: parts.limits,
    tokenizer: {
      ids: (text) => words.ids(plainText(text, symbols)),
      reader: () => createRewritingReader(words.reader(), (text) => plainText(text, symbols)),
      unreadShare: words.unreadShare,
    },
    relevanceOf,
    stageA,
    stageB: new StageB(graphB, options.special, options.packTokens),
  });
}

class TwoStage implements Family {
  readonly tokenizer: TextTokenizer;
  readonly #parts: TwoStageParts;
  /** Tokens of the words that the rule knows. */
  readonly #verdicts: readonly Ids[];
  readonly #negation: Ids;
  readonly #residuals: readonly Ids[];
  readonly #steps: readonly Ids[];

  constructor(parts: TwoStageParts) {
    const { tokenizer, options } = parts;
    this.tokenizer = tokenizer;
    this.#parts = parts;
    this.#verdicts = options.stack.verdicts.map((word) => tokenizer.ids(word));
    this.#negation = tokenizer.ids(options.stack.negation);
    this.#residuals = options.stack.residuals.map((words) => tokenizer.ids(words));
    this.#steps = options.stack.steps.map((word) => tokenizer.ids(word));
  }

  async score(texts: Premise, choices: readonly string[], control: RunControl): Promise<FamilyScores> {
    const { options } = this.#parts;
    const { vectors: choiceVectors, encoded, ...reading } = await this.#encodeChoices(choices, control);
    const premise = await this.#split(texts, control);
    const plan = await this.#plan(premise, choices, control);
    const { chosen, vector } = await this.#chooseWindows(premise, plan, choiceVectors, control);
    const nearest = Float64Array.from(choices, (_, i) => Math.max(...chosen.map(({ a }) => a[i] as number)));
    const best = highest(nearest, options.best);
    const bestVectors = best.map((place) => choiceVectors[place] as Float32Array);
    const bestChoices = best.map((place) => choices[place] as string);
    const blocks = await this.#readChoices(bestChoices, control);
    const facts = this.#factsOf(choices.length, bestVectors, blocks);
    const leaning = await this.#leaningOf(premise.instruction, choices.length, blocks, control);
    const logits: Float64Array[] = [];
    for (const window of chosen) {
      const scores = await this.#parts.stageB.readAll(premise.instruction, window.text, blocks, control);
      const b = Float64Array.from(scores, (each, i) => each - options.stack.lean * (leaning?.[i] ?? 0));
      const a = Float64Array.from(best, (place) => window.a[place] as number);
      logits.push(stackLogits(options.stack, { a, b, about: window.about }, facts));
    }
    const z = this.#joined(
      logits,
      chosen.map(({ relevance }) => relevance),
    );
    const choiceTokens = Math.max(facts.optionTokens, reading.choiceTokens ?? 0);
    return { probabilities: composeDistribution(options.stack, nearest, best, z), vector, encoded, choiceTokens };
  }

  async prepare(choices: readonly string[], control: RunControl): Promise<void> {
    await this.#encodeChoices(choices, control);
  }

  profile() {
    const { stageA, stageB, options, limits } = this.#parts;
    return measureTwoStage(stageA, stageB, options, limits);
  }

  async dispose(): Promise<void> {
    await this.#parts.stageA.dispose();
    await this.#parts.stageB.dispose();
  }

  async #readChoices(choices: readonly string[], control: RunControl): Promise<readonly Ids[]> {
    const { tokenizer, limits, options } = this.#parts;
    const read = await tokensOfChoices(tokenizer, choices, limits.candidateTokens, control, wordsOf);
    // A choice without any token is read as one unknown token.
    return read.map((ids) => (ids.length > 0 ? ids : [options.special.unk]));
  }

  #encodeChoices(choices: readonly string[], control: RunControl): Promise<EncodedChoices> {
    return encodeChoices(
      choices,
      control.vectors,
      (missing) => this.#readChoices(missing, control),
      (ids) => this.#parts.stageA.encode(ids, control),
    );
  }

  /** The windows of a premise: one if it fits. */
  async #split({ instruction, input, inputText }: Premise, control: RunControl): Promise<Windows> {
    const { windows } = this.#parts.options;
    const fits = fitsOneWindow(instruction.length + input.length, windows);
    const lines = fits ? [input] : await linesOf(inputText, input, (line) => this.#lineIds(line, control));
    return splitPremise(instruction, lines, windows);
  }

  /** The tokens of a line; the text as a whole is within the limit. */
  async #lineIds(line: string, control: RunControl): Promise<Ids> {
    const found = await boundedTokens(this.tokenizer, line, this.#parts.limits.inputTokens, control.pause);
    return found.kind === 'tokens' ? found.ids : [];
  }

  async #plan(premise: Windows, choices: readonly string[], control: RunControl): Promise<WindowPlan> {
    if (premise.windows.length === 1) return { most: 1, first: false };
    const lengths = (await this.#readChoices(choices, control)).map((ids) => ids.length);
    return planOf(premise.instruction.length, lengths, this.#parts.options);
  }

  /**
   * The windows for stage B: the only one, or the `most` most relevant in text order and the `first` one of the whole
   * text.
   */
  async #chooseWindows(
    { instruction, windows: texts }: Windows,
    { most, first }: WindowPlan,
    choiceVectors: readonly Float32Array[],
    control: RunControl,
  ): Promise<ChosenWindows> {
    const { options, relevanceOf, stageA } = this.#parts;
    const { windows, stack } = options;
    const asksAbout = texts.length > 1 || stack.features.includes('about');
    const question = asksAbout ? await stageA.encodeInstruction(instruction, control) : undefined;
    const cosinesOf = (text: Float32Array) => Float64Array.from(choiceVectors, (vector) => dot(text, vector));
    const aboutOf = (text: Float32Array) => (question === undefined ? 0 : dot(text, question));
    const segments: Float32Array[] = [];
    for (const text of texts) segments.push(await stageA.encode(text, control));
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
      const text = texts.flat().slice(0, windows.premise - FRAME_TOKENS - instruction.length);
      const vector = await stageA.encode(text, control);
      const mean = relevance.reduce((sum, value) => sum + value, 0) / relevance.length;
      chosen.push({ text, a: cosinesOf(vector), about: aboutOf(vector), relevance: mean + windows.firstLead });
    }
    return { chosen, vector: segments.length === 1 ? (segments[0] as Float32Array) : middle(segments) };
  }

  /** The facts of a request that the rule uses; `vectors` and `blocks` are those of its best choices. */
  #factsOf(choices: number, vectors: readonly Float32Array[], blocks: readonly Ids[]): RequestFacts {
    return {
      choices,
      closeness: closenessOf(vectors),
      optionTokens: blocks.reduce((sum, block) => sum + block.length, 0) / blocks.length,
      verdicts: this.#verdicts.length === 0 ? 0 : verdictsAmong(blocks, this.#verdicts, this.#negation),
      residual: residualsAmong(blocks, this.#residuals).includes(true),
      steps: this.#steps.length === 0 ? 0 : scaleStepsAmong(blocks, this.#steps),
    };
  }

  /** What stage B leans to without a text; undefined if the rule does not use it. */
  async #leaningOf(
    instruction: Ids,
    choices: number,
    blocks: readonly Ids[],
    control: RunControl,
  ): Promise<Float64Array | undefined> {
    const { stack, best } = this.#parts.options;
    // If there are more choices than stage B reads, the best ones differ from text to text, so nothing could be kept.
    if (stack.lean === 0 || choices > best) return undefined;
    const silent = await this.#parts.stageB.readSilent(instruction, blocks, control);
    return leaningOf(silent, residualsAmong(blocks, this.#residuals));
  }

  /** z of all windows together: each is weighted by its confidence and its relevance. */
  #joined(logits: readonly Float64Array[], relevance: readonly number[]): Float64Array {
    const [only] = logits;
    if (only !== undefined && logits.length === 1) return only;
    const { kappaConfidence, kappaRelevance } = this.#parts.options.windows;
    const weights = softmax(
      Float64Array.from(logits, (z, w) => {
        return kappaConfidence * Math.max(...softmax(z)) + kappaRelevance * (relevance[w] as number);
      }),
    );
    return Float64Array.from(only ?? [], (_, i) => {
      return logits.reduce((sum, z, w) => sum + (weights[w] as number) * (z[i] as number), 0);
    });
  }
}
