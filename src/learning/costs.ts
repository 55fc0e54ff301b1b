/**
 * The thresholds that cost least: an answer that is sure enough is acted on, and costs something where it is wrong; any
 * other goes to a person, who costs something, too.
 */
import { meanOf } from './matrix.ts';
import { type JudgedAnswer, LEAST_ABOVE } from './quality.ts';

/** What mistakes and people cost, in any unit. */
export interface Costs {
  /** What it costs that a person decides a text. */
  readonly person: number;
  /** What a wrong answer costs, except for `mistakes`. */
  readonly wrong: number;
  /** Mistakes with costs of their own; the first that fits counts. Without a label, or a choice, any fits. */
  readonly mistakes?: readonly { readonly label?: string; readonly choice?: string; readonly cost: number }[];
}

/** A figure with its 95 % interval. */
export interface Spread {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** What costs least. */
export interface Cheapest {
  /** By choice, the confidence from which on it is acted on; infinite where a person always decides. */
  readonly thresholds: ReadonlyMap<string, Spread>;
  /** The cost of a text at such thresholds, measured on texts that they were not chosen by. */
  readonly cost: Spread;
  /** The cost of a text if every answer is acted on, and if none is. */
  readonly actingOnAll: number;
  readonly askingAlways: number;
}

/** Samples with replacement from which intervals are taken. */
const SAMPLES = 200;

/**
 * The thresholds of each choice. A choice with too few answers gets the one that costs least over all. The same answers
 * in the same order give the same result.
 */
export function cheapest(answers: readonly JudgedAnswer[], choices: readonly string[], costs: Costs): Cheapest {
  const acting = answers.map((answer) => costOf(answer, costs));
  const all = answers.map((_, place) => place);
  const fitted = thresholdsOf(all);
  const random = generator(answers.length);
  const drawn: Map<string, number>[] = [];
  const unseen: number[] = [];
  for (let sample = 0; sample < SAMPLES; sample++) {
    const places = all.map(() => Math.floor(random() * answers.length));
    const thresholds = thresholdsOf(places);
    const others = new Set(all).difference(new Set(places));
    drawn.push(thresholds);
    if (others.size > 0) unseen.push(meanOf([...others].map((place) => costAt(place, thresholds))));
  }
  return {
    thresholds: new Map(
      choices.map((choice) => {
        const values = drawn.map((thresholds) => thresholds.get(choice) as number);
        return [choice, spread(fitted.get(choice) as number, values)];
      }),
    ),
    cost: spread(meanOf(unseen), unseen),
    actingOnAll: meanOf(acting),
    askingAlways: costs.person,
  };

  function thresholdsOf(places: readonly number[]): Map<string, number> {
    const over = cut(places);
    return new Map(
      choices.map((choice) => {
        const own = places.filter((place) => answers[place]?.choice === choice);
        return [choice, own.length < LEAST_ABOVE ? over : cut(own)];
      }),
    );
  }
  /** The confidence from which on acting costs least. */
  function cut(places: readonly number[]): number {
    const sorted = places.toSorted((a, b) => confidenceOf(b) - confidenceOf(a));
    let best = { saved: 0, threshold: Number.POSITIVE_INFINITY };
    let saved = 0;
    for (const [rank, place] of sorted.entries()) {
      saved += costs.person - (acting[place] as number);
      const next = sorted[rank + 1];
      if (next !== undefined && confidenceOf(next) === confidenceOf(place)) continue;
      if (saved > best.saved) best = { saved, threshold: confidenceOf(place) };
    }
    return best.threshold;
  }
  function confidenceOf(place: number): number {
    return (answers[place] as JudgedAnswer).confidence;
  }
  function costAt(place: number, thresholds: ReadonlyMap<string, number>): number {
    const { choice, confidence } = answers[place] as JudgedAnswer;
    return confidence >= (thresholds.get(choice) as number) ? (acting[place] as number) : costs.person;
  }
}

function costOf({ label, choice }: JudgedAnswer, { wrong, mistakes = [] }: Costs): number {
  if (label === choice) return 0;
  const own = mistakes.find((each) => (each.label ?? label) === label && (each.choice ?? choice) === choice);
  return own?.cost ?? wrong;
}

function spread(value: number, values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] ?? value;
  return { value, low: at(0.025), high: at(0.975) };
}

/** Numbers from 0 to 1 that look random and are always the same (mulberry32). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
