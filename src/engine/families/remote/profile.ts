/**
 * Measures how long a server takes, by the clock: full batches of short and of the longest rows, one request at a time.
 * If a local model picks the choices, its cost comes on top.
 */
import { type CostCurve, type CostProfile, type JobSize, plainCost } from '../../cost-profile.ts';
import type { ModelLimits } from '../../engine.ts';
import type { FamilyName } from '../../packages/manifest.ts';
import type { TextTokenizer } from '../../text/tokenizer.ts';
import type { Premise } from '../family.ts';
import { CallFailed } from './call-failed.ts';
import type { InferenceJob } from './calls.ts';
import type { ReadChoice, Scorer } from './scorer.ts';

/** What a measurement is made with. */
export interface ProfileOptions {
  /** Scores without a cache: each batch asks the server. */
  readonly scorer: Scorer;
  /** Whether the scorer that will decide keeps the server's results for choices. */
  readonly keepsChoices: boolean;
  readonly tokenizer: TextTokenizer;
  readonly limits: ModelLimits;
  /** Rows of a full batch. */
  readonly rows: number;
  /** How many of the server's tokens one counted here can be: a byte is a token of it at most. */
  readonly densest: number;
  call(): InferenceJob;
}

/**
 * The two words of the texts that try the server. To find out whether it cuts, they say both in turn, and in their last
 * eighth one of them.
 */
const SAYINGS = ['a', 'z'] as const;

/** Throws, unless the server did its work and the model said something else than was asked for: that is timed, too. */
function unlessAnswered(error: unknown): void {
  if (!(error instanceof CallFailed && error.outcome === 'malformed' && error.blame === 'request')) throw error;
}

/** Milliseconds: a server that took longer once is slow, and asking again would use up the time that loading has. */
const SLOW = 3000;

/** The profile of a model at a server. Rejects with CallFailed. */
export async function measureServer({
  scorer,
  keepsChoices,
  tokenizer,
  limits,
  rows,
  call,
}: ProfileOptions): Promise<CostProfile> {
  const textOf = (tokens: number, word: string = SAYINGS[0]) => ({
    text: `${word} `.repeat(tokens).trim(),
    ids: new Array<number>(tokens).fill(tokenizer.ids(word)[0] ?? 0),
  });
  // Another text in each round: a server may keep what it has read.
  const premiseOf = (tokens: number, word: string): Premise => {
    const { text, ids } = textOf(tokens, word);
    const one = textOf(1);
    return { input: ids, inputText: text, instruction: one.ids, instructionText: one.text };
  };
  // Each is a different text, since a server may use choices as names.
  const choicesOf = (count: number, tokens: number): readonly ReadChoice[] =>
    Array.from({ length: count }, (_, i) => ({ ...textOf(tokens), text: `${'a '.repeat(tokens - 1)}${i}` }));

  /** The lesser of two times: a server that was busy with others for a moment must not look slow. */
  const time = async (premiseTokens: number, choices: number, choiceTokens: number): Promise<number> => {
    let least = Number.POSITIVE_INFINITY;
    for (const word of SAYINGS) {
      const began = performance.now();
      await scorer
        .logits(premiseOf(premiseTokens, word), choicesOf(choices, choiceTokens), call())
        .catch(unlessAnswered);
      least = Math.min(least, performance.now() - began);
      if (least > SLOW) break;
    }
    return least;
  };

  const { inputTokens, candidateTokens } = limits;
  const longest = Math.max(1, inputTokens - 1);
  // Two if possible: a server that decides itself does not take a single choice.
  const few = Math.min(2, rows);
  const more = Math.max(1, rows - few);
  const short = await time(1, rows, 1);
  const long = await time(longest, rows, candidateTokens);
  if (scorer.choiceReadsPremise) {
    const round = await time(1, few, 1);
    const each = (batch: number): number => Math.max(0, batch - round) / more;
    return {
      premise: [[1, round]],
      choice: curve([2, each(short)], [longest + candidateTokens, each(long)]),
      choiceReadsPremise: true,
      choicesCached: false,
    };
  }
  const shortPremise = await time(1, few, 1);
  const longPremise = await time(longest, few, 1);
  const longChoices = await time(1, rows, candidateTokens);
  return {
    premise: curve([1, shortPremise], [longest, longPremise]),
    choice: curve(
      [1, Math.max(0, short - shortPremise) / more],
      [candidateTokens, Math.max(0, longChoices - shortPremise) / more],
    ),
    choiceReadsPremise: false,
    choicesCached: keepsChoices,
  };
}

/** Numbers that differ by no more are the same. */
const NEAR = 1e-3;

/**
 * What is wrong with limits that let in texts which the server cuts without a word: two texts of the most tokens that
 * can be let in differ in their last eighth, and get the same numbers. Undefined if they do not, if the server refuses
 * them, or if its numbers tell nothing apart. Rejects with CallFailed.
 */
export async function cutProblem(options: ProfileOptions): Promise<string | undefined> {
  const { scorer, tokenizer, limits, densest, call } = options;
  if (scorer.coarse === true) return undefined;
  const readOf = (words: readonly string[]) => ({
    text: words.join(' '),
    ids: words.map((word) => tokenizer.ids(word)[0] ?? 0),
  });
  const { text: instructionText, ids: instruction } = readOf(SAYINGS);
  const most = Math.ceil(Math.max(1, limits.inputTokens - SAYINGS.length) * densest);
  const choices = SAYINGS.map((saying) => readOf(new Array<string>(limits.candidateTokens).fill(saying)));
  const found: Float64Array[] = [];
  for (const saying of SAYINGS) {
    const words = Array.from({ length: most }, (_, i) => (8 * i < 7 * most ? (SAYINGS[i % 2] as string) : saying));
    const { text: inputText, ids: input } = readOf(words);
    try {
      const premise = { input, inputText, instruction, instructionText };
      const { logits, doubt } = await scorer.logits(premise, choices, call());
      // The canary will tell what is the matter.
      if (doubt !== undefined || new Set(logits).size === 1) return undefined;
      found.push(logits);
    } catch (error) {
      if (error instanceof CallFailed && (error.blame === 'request' || error.outcome === 'timed_out')) return undefined;
      throw error;
    }
  }
  const [one, other] = found as [Float64Array, Float64Array];
  if (one.some((logit, i) => Math.abs(logit - (other[i] as number)) > NEAR)) return undefined;
  return `limits.input_tokens lets in texts that the server cuts without saying so: of ${most} words it did not read the last eighth. Lower it, have the server refuse such texts, or say "cuts": "silently" and add the model's tokenizer`;
}

/** A curve that does not fall: if the longer run was faster, that was chance. */
function curve(first: readonly [number, number], last: readonly [number, number]): CostCurve {
  return first[0] >= last[0] ? [last] : [first, [last[0], Math.max(first[1], last[1])]];
}

/**
 * The profile of a server and of the local model that picks choices for it. The curves of `CostProfile` itself give the
 * cost of a premise at the server and of a choice in the local model; a job's cost is that of its parts.
 */
export interface ShortlistProfile extends CostProfile {
  readonly shortlisted: {
    /** The most choices that the server takes. */
    readonly cap: number;
    readonly family: FamilyName;
    readonly local: CostProfile;
    readonly decider: CostProfile;
  };
}

/** Milliseconds of a job of this size, of which `costOf` says what the local model's part takes. */
export function shortlistCost(
  profile: CostProfile,
  size: JobSize,
  costOf: (family: FamilyName, profile: CostProfile, size: JobSize) => number,
): number {
  const { shortlisted } = profile as Partial<ShortlistProfile>;
  if (shortlisted === undefined) return plainCost(profile, size);
  const { cap, family, local, decider } = shortlisted;
  const sizeFor = (of: CostProfile, choices: number): JobSize => ({
    ...size,
    choices,
    uncached: of.choicesCached ? Math.min(size.uncached, choices) : choices,
  });
  const deciding = plainCost(decider, sizeFor(decider, Math.min(size.choices, cap)));
  return size.choices <= cap ? deciding : costOf(family, local, sizeFor(local, size.choices)) + deciding;
}
