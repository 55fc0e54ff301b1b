/** How good answers with known labels are, and from which confidence upwards they can be acted on. */
import { logOf } from '../engine/tempered.ts';
import { meanOf } from './matrix.ts';

/** One answer whose label is known. It is right if the choice is the label. */
export interface JudgedAnswer {
  readonly label: string;
  readonly choice: string;
  readonly confidence: number;
  /** The probability of the label. */
  readonly ofLabel: number;
}

/** A share with its 95 % interval (Wilson). */
export interface Share {
  readonly share: number;
  readonly low: number;
  readonly high: number;
}

/** One row of the table: the lowest confidence from which upwards answers are right as often as the target says. */
export interface Threshold {
  readonly target: number;
  /** Undefined if no confidence is enough. `coverage`: the share of all texts at or above it. */
  readonly found?: { readonly threshold: number; readonly coverage: number; readonly accuracy: Share };
}

/** A label and another choice that was answered in its place. */
export interface Confusion {
  readonly label: string;
  readonly choice: string;
  readonly count: number;
  /** The places of some such answers. */
  readonly places: readonly number[];
}

/** How well one choice is found, and how often it is answered in another's place. */
export interface ChoiceQuality {
  readonly choice: string;
  /** Texts with this label, and the share of them that got another answer; undefined without such texts. */
  readonly texts: number;
  readonly missed: Share | undefined;
  /** The share of the texts with other labels that got this answer, and their number. */
  readonly wrongly: Share | undefined;
  readonly others: number;
}

/** All figures about a list of answers. Shares are from 0 to 1. */
export interface AnswerQuality {
  readonly answers: number;
  readonly accuracy: Share;
  readonly macroF1: number;
  readonly logLoss: number;
  readonly ece: number;
  readonly thresholds: readonly Threshold[];
  readonly confusions: readonly Confusion[];
  /** Of all choices that are a label or an answer, those with the most mistakes first. */
  readonly choices: readonly ChoiceQuality[];
}

/** One bin of a reliability diagram. */
export interface ReliabilityBin {
  readonly count: number;
  readonly confidence: number;
  readonly accuracy: Share;
}

const TARGETS = [0.8, 0.9, 0.95, 0.99];
const BINS = 15;
const MOST_CONFUSIONS = 10;
const MOST_PLACES = 3;
/** Fewer answers above a threshold say too little. */
export const LEAST_ABOVE = 20;
/** The normal quantile of 95 %. */
export const Z = 1.96;

/** The quality of at least one answer. */
export function qualityOf(answers: readonly JudgedAnswer[]): AnswerQuality {
  const right = answers.filter(isRight).length;
  return {
    answers: answers.length,
    accuracy: wilson(right, answers.length),
    macroF1: macroF1(answers),
    logLoss: meanOf(answers.map(({ ofLabel }) => -logOf(ofLabel))),
    ece: reliabilityOf(answers).reduce(
      (sum, bin) => sum + (bin.count / answers.length) * Math.abs(bin.confidence - bin.accuracy.share),
      0,
    ),
    thresholds: TARGETS.map((target) => thresholdFor(answers, target)),
    confusions: confusionsOf(answers),
    choices: choicesOf(answers),
  };
}

/** Bins with nearly equal numbers of answers, by rising confidence. */
export function reliabilityOf(answers: readonly JudgedAnswer[], bins = BINS): readonly ReliabilityBin[] {
  const sorted = answers.toSorted((a, b) => a.confidence - b.confidence);
  return Array.from({ length: bins }, (_, bin) =>
    sorted.slice(Math.floor((bin * sorted.length) / bins), Math.floor(((bin + 1) * sorted.length) / bins)),
  )
    .filter((part) => part.length > 0)
    .map((part) => ({
      count: part.length,
      confidence: meanOf(part.map(({ confidence }) => confidence)),
      accuracy: wilson(part.filter(isRight).length, part.length),
    }));
}

/** Wilson's interval of a share. */
export function wilson(hits: number, count: number): Share {
  const share = hits / count;
  const square = Z ** 2 / count;
  const middle = (share + square / 2) / (1 + square);
  const reach = (Z / (1 + square)) * Math.sqrt((share * (1 - share)) / count + square / (4 * count));
  return { share, low: Math.max(0, middle - reach), high: Math.min(1, middle + reach) };
}

/** Finds the most answers, from the surest down, that reach the target; those of equal confidence stay together. */
function thresholdFor(answers: readonly JudgedAnswer[], target: number): Threshold {
  const sorted = answers.toSorted((a, b) => b.confidence - a.confidence);
  let right = 0;
  let found: Threshold['found'];
  for (const [place, answer] of sorted.entries()) {
    if (isRight(answer)) right++;
    const count = place + 1;
    if (sorted[count]?.confidence === answer.confidence || right < target * count) continue;
    if (count < Math.min(LEAST_ABOVE, answers.length)) continue;
    found = { threshold: answer.confidence, coverage: count / answers.length, accuracy: wilson(right, count) };
  }
  return found === undefined ? { target } : { target, found };
}

function confusionsOf(answers: readonly JudgedAnswer[]): readonly Confusion[] {
  const pairs = new Map<string, { label: string; choice: string; places: number[] }>();
  for (const [place, { label, choice }] of answers.entries()) {
    if (label === choice) continue;
    const key = JSON.stringify([label, choice]);
    const pair = pairs.get(key) ?? { label, choice, places: [] };
    pairs.set(key, pair);
    pair.places.push(place);
  }
  return [...pairs.values()]
    .toSorted((a, b) => b.places.length - a.places.length)
    .slice(0, MOST_CONFUSIONS)
    .map(({ label, choice, places }) => ({
      label,
      choice,
      count: places.length,
      places: places.slice(0, MOST_PLACES),
    }));
}

/** Mean F1 of the choices that occur as label or answer. */
function macroF1(answers: readonly JudgedAnswer[]): number {
  return meanOf([...countsOf(answers).values()].map(({ hits, asked, given }) => (2 * hits) / (asked + given)));
}

function choicesOf(answers: readonly JudgedAnswer[]): readonly ChoiceQuality[] {
  const share = (count: number, of: number): Share | undefined => (of === 0 ? undefined : wilson(count, of));
  return [...countsOf(answers)]
    .toSorted(([a, { mistakes }], [b, { mistakes: more }]) => more - mistakes || (a < b ? -1 : 1))
    .map(([choice, { hits, asked, given }]) => {
      const others = answers.length - asked;
      return { choice, texts: asked, missed: share(asked - hits, asked), wrongly: share(given - hits, others), others };
    });
}

/** By choice: texts with that label, answers with it, right ones, and mistakes of both kinds. */
function countsOf(answers: readonly JudgedAnswer[]) {
  const counts = new Map<string, { hits: number; asked: number; given: number; mistakes: number }>();
  const of = (name: string) => {
    const found = counts.get(name) ?? { hits: 0, asked: 0, given: 0, mistakes: 0 };
    counts.set(name, found);
    return found;
  };
  for (const { label, choice } of answers) {
    of(label).asked++;
    of(choice).given++;
    if (label === choice) of(label).hits++;
    else for (const name of [label, choice]) of(name).mistakes++;
  }
  return counts;
}

/** Whether the choice is the label. */
export function isRight({ label, choice }: JudgedAnswer): boolean {
  return label === choice;
}
