/** Measures how good answers are. A refused row counts as a wrong answer with a probability of 0 on every choice. */
import type { Answer } from './ask.ts';
import type { DataSet, Row } from './data-sets.ts';

/** The quality of answers. Shares and errors are from 0 to 1 (`brier` to 2). */
export interface Quality {
  readonly rows: number;
  readonly refused: number;
  readonly accuracy: number;
  /** Mean F1 over the classes that occur as label or answer; undefined if rows have choices of their own. */
  readonly macroF1: number | undefined;
  /** Expected calibration error over 15 bins of equal mass. */
  readonly ece: number;
  /** Mean squared error of the whole distribution. */
  readonly brier: number;
  /** Share of all answers that are wrong with a confidence of 0.9 or more. */
  readonly wrongAndSure: number;
  /** The number of answers with such a confidence. */
  readonly sure: number;
  /** In a set of pairs: the share of pairs whose two answers differ. */
  readonly opposite: number | undefined;
  readonly none: NoneOfThese;
}

/** Counts of the rows that have a choice which says that no other one fits. */
export interface NoneOfThese {
  /** Rows whose label it is. */
  readonly right: number;
  /** Of these, those that were answered with another choice, or refused. */
  readonly missed: number;
  /** Rows that another choice fits. */
  readonly wrong: number;
  /** Of these, those that were answered with it. */
  readonly chosen: number;
}

/** One bin of a reliability diagram. */
export interface Bin {
  readonly count: number;
  /** The mean over the bin's rows; so is `accuracy`. */
  readonly confidence: number;
  readonly accuracy: number;
}

interface Judged {
  readonly confidence: number;
  readonly right: boolean;
}

/** The choices that say so, in the sets that are measured. */
const NONE_FITS: readonly string[] = ['none of these', 'none of the above', 'something else'];

/** Bins of the calibration error and of the reliability diagram. */
const BINS = 15;

/** The quality of a set's answers, which are in the order of its rows. */
export function measure({ rows, fixedChoices, pairs }: DataSet, answers: readonly Answer[]): Quality {
  const judged = judge(rows, answers);
  const share = (holds: (each: Judged) => boolean): number => judged.filter(holds).length / judged.length;
  return {
    rows: rows.length,
    refused: answers.filter(({ kind }) => kind === 'refused').length,
    accuracy: share(({ right }) => right),
    macroF1: fixedChoices ? macroF1(rows, answers) : undefined,
    ece: reliability(judged).reduce(
      (sum, bin) => sum + (bin.count / judged.length) * Math.abs(bin.confidence - bin.accuracy),
      0,
    ),
    brier: mean(answers.map((answer) => (answer.kind === 'decided' ? answer.squares - 2 * answer.ofLabel + 1 : 1))),
    wrongAndSure: share(({ right, confidence }) => !right && confidence >= 0.9),
    sure: judged.filter(({ confidence }) => confidence >= 0.9).length,
    opposite: pairs ? opposite(answers) : undefined,
    none: noneOfThese(rows, answers),
  };
}

/** The means over sets, each with the same weight. Counts are added up. */
export function average(all: readonly Quality[]): Quality {
  const of = (name: 'accuracy' | 'ece' | 'brier' | 'wrongAndSure'): number => mean(all.map((each) => each[name]));
  const total = (of: (each: Quality) => number): number => all.reduce((sum, each) => sum + of(each), 0);
  const f1 = all.flatMap((each) => (each.macroF1 === undefined ? [] : [each.macroF1]));
  return {
    rows: total((each) => each.rows),
    refused: total((each) => each.refused),
    accuracy: of('accuracy'),
    macroF1: f1.length === 0 ? undefined : mean(f1),
    ece: of('ece'),
    brier: of('brier'),
    wrongAndSure: of('wrongAndSure'),
    sure: total((each) => each.sure),
    opposite: undefined,
    none: {
      right: total((each) => each.none.right),
      missed: total((each) => each.none.missed),
      wrong: total((each) => each.none.wrong),
      chosen: total((each) => each.none.chosen),
    },
  };
}

/** Whether each answer is right, and its confidence. */
export function judge(rows: readonly Row[], answers: readonly Answer[]): readonly Judged[] {
  return answers.map((answer, place) =>
    answer.kind === 'decided'
      ? { confidence: answer.confidence, right: answer.choice === rows[place]?.label }
      : { confidence: 0, right: false },
  );
}

/** Bins of (nearly) equal size by rising confidence; if the rows do not divide evenly, the first bins have one more. */
export function reliability(judged: readonly Judged[]): readonly Bin[] {
  const sorted = judged.toSorted((a, b) => a.confidence - b.confidence);
  const found: Bin[] = [];
  let start = 0;
  for (let bin = 0; bin < BINS; bin++) {
    const count = Math.floor(sorted.length / BINS) + (bin < sorted.length % BINS ? 1 : 0);
    const part = sorted.slice(start, start + count);
    start += count;
    if (count === 0) continue;
    found.push({
      count,
      confidence: mean(part.map(({ confidence }) => confidence)),
      accuracy: mean(part.map(({ right }) => (right ? 1 : 0))),
    });
  }
  return found;
}

function macroF1(rows: readonly Row[], answers: readonly Answer[]): number {
  const counts = new Map<string, { hits: number; asked: number; given: number }>();
  const of = (name: string) => {
    const found = counts.get(name) ?? { hits: 0, asked: 0, given: 0 };
    counts.set(name, found);
    return found;
  };
  for (const [place, { label }] of rows.entries()) {
    const answer = answers[place];
    of(label).asked++;
    if (answer?.kind !== 'decided') continue;
    of(answer.choice).given++;
    if (answer.choice === label) of(label).hits++;
  }
  return mean([...counts.values()].map(({ hits, asked, given }) => (2 * hits) / (asked + given)));
}

function noneOfThese(rows: readonly Row[], answers: readonly Answer[]): NoneOfThese {
  const counts = { right: 0, missed: 0, wrong: 0, chosen: 0 };
  for (const [place, { choices, label }] of rows.entries()) {
    if (!choices.some((choice) => NONE_FITS.includes(choice))) continue;
    const answer = answers[place];
    const isNone = answer?.kind === 'decided' && NONE_FITS.includes(answer.choice);
    if (NONE_FITS.includes(label)) {
      counts.right++;
      if (!isNone) counts.missed++;
    } else {
      counts.wrong++;
      if (isNone) counts.chosen++;
    }
  }
  return counts;
}

function opposite(answers: readonly Answer[]): number {
  const choiceOf = (answer: Answer | undefined) => (answer?.kind === 'decided' ? answer.choice : undefined);
  const pairs = Array.from({ length: Math.floor(answers.length / 2) }, (_, i) => [answers[2 * i], answers[2 * i + 1]]);
  return mean(
    pairs.map(([one, other]) => {
      const [first, second] = [choiceOf(one), choiceOf(other)];
      return first !== undefined && second !== undefined && first !== second ? 1 : 0;
    }),
  );
}

/** The mean; NaN of no values. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The median; NaN of no values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[middle] as number) : mean(sorted.slice(middle - 1, middle + 1));
}
