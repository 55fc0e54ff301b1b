/** What a dialect provides to the remote family: a scorer, and what goes in and out of it. */
import { ChoiceTooLong, InputTooLong, type Premise } from '../family.ts';
import { CallFailed } from './call-failed.ts';
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
export function ofChoices(error: unknown, choices: readonly ReadChoice[]): unknown {
  const longest = choices.reduce<ReadChoice | undefined>(
    (found, each) => (found !== undefined && found.ids.length >= each.ids.length ? found : each),
    undefined,
  );
  if (!(error instanceof CallFailed) || error.tooLong === undefined || longest === undefined) return error;
  const { tokens = longest.ids.length, limit } = error.tooLong;
  // If a server counts nothing, all that is known is that it takes fewer.
  return new ChoiceTooLong(longest.text, tokens, limit !== undefined && limit < tokens ? limit : tokens - 1);
}
