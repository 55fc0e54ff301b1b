/** What a dialect provides to the remote family: a scorer, and what goes in and out of it. */
import { ChoiceTooLong, InputTooLong, type Premise } from '../family.ts';
import { dot, mixed, normalised } from '../vectors.ts';
import { CallFailed, malformed } from './call-failed.ts';
import { allTogether, type InferenceJob } from './calls.ts';

/** Choices with their tokens, within the limit. */
export interface ReadChoice {
  readonly text: string;
  readonly ids: readonly number[];
}

/** What a scorer makes of a server's numbers. */
export interface Logits {
  /** One for each choice, finite, not yet divided by the package's temperature. */
  readonly logits: Float64Array;
  /** How many choices the server had to read. */
  readonly read: number;
  /** The vector of the text, of length 1, where the server gives one: learned weights read it. */
  readonly vector?: Float32Array;
  /**
   * Why numbers like these cannot tell choices apart, for example because they were cut off. A package whose canary
   * decision has such numbers is not served; in other decisions this is ignored.
   */
  readonly doubt?: string | undefined;
}

/** Makes logits of a server's numbers, by calls. */
export interface Scorer {
  /** Rejects with CallFailed. The choices are in code-unit order. */
  logits(premise: Premise, choices: readonly ReadChoice[], call: InferenceJob): Promise<Logits>;
  /** Does in advance what depends on the choices alone, if anything does. Rejects with CallFailed. */
  prepare?(choices: readonly ReadChoice[], call: InferenceJob): Promise<void>;
  /** Whether a choice's row holds the premise. */
  readonly choiceReadsPremise: boolean;
  /** Its numbers hardly differ between texts, so they cannot show that a text was cut. */
  readonly coarse?: boolean;
}

/**
 * Asks in up to `count` orders of the choices, at the same time, for a server that favours places. The orders are
 * rotations of the one given, so they follow from the choices alone; a logit is the mean of those of all orders.
 * `ask` resolves to logits in the order that it is given.
 */
export async function overTurns(
  choices: readonly ReadChoice[],
  count: number,
  call: InferenceJob,
  ask: (turned: readonly ReadChoice[], part: InferenceJob) => Promise<Pick<Logits, 'logits' | 'doubt'>>,
): Promise<Logits> {
  const turns = turnsOf(choices.length, count);
  const answers = await allTogether(turns, call, async (turn, part) => ({
    turn,
    ...(await ask([...choices.slice(turn), ...choices.slice(0, turn)], part)),
  }));
  const logits = new Float64Array(choices.length);
  for (const { turn, logits: turned } of answers) {
    for (const [i, logit] of turned.entries()) {
      const place = (i + turn) % choices.length;
      logits[place] = (logits[place] as number) + logit / answers.length;
    }
  }
  return { logits, read: choices.length, doubt: answers.find(({ doubt }) => doubt !== undefined)?.doubt };
}

/**
 * How far the order of `count` choices is rotated for each of `turns` requests, evenly; fewer where rotations would be
 * the same.
 */
export function turnsOf(count: number, turns: number): readonly number[] {
  return [...new Set(Array.from({ length: turns }, (_, i) => Math.floor((i * count) / turns)))];
}

// What becomes of a text that the server does not read whole: the caller is told so with the server's own counts, where
// it gives them, since only they explain the refusal.

/**
 * The error that replaces a failed call about a premise, alone or with a choice. Any other error is returned as it is.
 */
export function ofPremise(error: unknown): unknown {
  if (!(error instanceof CallFailed) || error.tooLong === undefined) return error;
  const { tokens, limit } = error.tooLong;
  if (limit === undefined) return new InputTooLong();
  return new InputTooLong(tokens !== undefined && tokens > limit ? { tokens, limit } : { limit });
}

/**
 * The error that replaces a failed call about choices alone; it names the longest. Any other error is returned as it
 * is.
 */
function ofChoices(error: unknown, choices: readonly ReadChoice[]): unknown {
  const longest = choices.reduce<ReadChoice | undefined>(
    (found, each) => (found !== undefined && found.ids.length >= each.ids.length ? found : each),
    undefined,
  );
  if (!(error instanceof CallFailed) || error.tooLong === undefined || longest === undefined) return error;
  const { tokens = longest.ids.length, limit } = error.tooLong;
  // If a server counts nothing, all that is known is that it takes fewer.
  return new ChoiceTooLong(longest.text, tokens, limit !== undefined && limit < tokens ? limit : tokens - 1);
}

// For a server that encodes one text at a time: a bi-encoder. A choice's logit is the cosine of its vector and the
// premise's. Vectors of choices are kept only if a row's result does not depend on the rows beside it: otherwise a
// decision would depend on earlier ones.

/** Gets vectors from a server, of any length above 0, with separate requests for the choices and for the premise. */
export interface RemoteEncoder {
  /** One vector for each choice. Rejects with CallFailed. */
  choices(choices: readonly ReadChoice[], call: InferenceJob): Promise<readonly Float64Array[]>;
  /** The vector of the premise, or the two that are mixed. Rejects with CallFailed. */
  premise(premise: Premise, call: InferenceJob): Promise<readonly Float64Array[]>;
}

/** What the vectors of a premise are made of, as `RemoteEncoder` returns them: those that have any weight. */
export function premiseParts<T>(input: T, joint: T | undefined, jointWeight: number): readonly T[] {
  if (jointWeight === 0) return [input];
  return jointWeight === 1 ? [joint ?? input] : [input, joint ?? input];
}

/**
 * `jointWeight`: the share of the premise's second vector, if there are two. `keeps`: whether vectors may be kept. All
 * vectors must have the width of the first ones: with another width the server has another model.
 */
export function createVectorScorer(encoder: RemoteEncoder, jointWeight: number, keeps: boolean): Scorer {
  let width: number | undefined;

  const encodeMissing = (choices: readonly ReadChoice[], call: InferenceJob): Promise<readonly Float64Array[]> =>
    encoder.choices(choices, call).catch((error: unknown) => {
      throw ofChoices(error, choices);
    });

  const encodeChoices = async (choices: readonly ReadChoice[], call: InferenceJob) => {
    const vectors = keeps ? call.vectors : undefined;
    const found = choices.map(({ text }) => vectors?.get(text));
    const missing = choices.filter((_, i) => found[i] === undefined);
    const made = missing.length === 0 ? [] : (await encodeMissing(missing, call)).map(directed);
    const byText = new Map(missing.map(({ text }, i) => [text, made[i] as Float32Array]));
    for (const [text, vector] of byText) vectors?.set(text, vector);
    return { all: choices.map(({ text }, i) => found[i] ?? (byText.get(text) as Float32Array)), read: missing.length };
  };

  return {
    choiceReadsPremise: false,
    async logits(premise, choices, call) {
      const [{ all, read }, parts] = await together([encodeChoices(choices, call), encoder.premise(premise, call)]);
      const [first, second] = parts.map(directed);
      if (first === undefined || [...all, second ?? first].some(({ length }) => length !== first.length)) {
        throw malformed('the server returned vectors of several lengths');
      }
      width ??= first.length;
      if (first.length !== width)
        throw malformed(`the server returned vectors of ${first.length} numbers, not ${width}`);
      const vector = second === undefined ? first : mixed(first, second, jointWeight);
      return { logits: Float64Array.from(all, (each) => dot(vector, each)), read, vector };
    },
    async prepare(choices, call) {
      if (keeps) await encodeChoices(choices, call);
    },
  };
}

/** A vector that a server made, at length 1. */
function directed(row: Float64Array): Float32Array {
  const vector = normalised(row);
  if (vector === undefined) throw malformed('the server returned a vector without direction');
  return vector;
}

/** Both results, once both have ended. */
async function together<A, B>([a, b]: readonly [Promise<A>, Promise<B>]): Promise<readonly [A, B]> {
  await Promise.allSettled([a, b]);
  return [await a, await b];
}
