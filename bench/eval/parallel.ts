/**
 * The same decision in several languages. Sets whose names differ in their language alone (`topics_en`,
 * `topics_de`) are parallel if their rows are: as many, and row by row the same label. A few labels may differ,
 * since people gave them.
 */
import type { Answer } from './ask.ts';
import type { DataSet } from './data-sets.ts';
import { mean, median } from './metrics.ts';

/** A set in English and the same in another language. */
export interface ParallelSets {
  /** The name without the language. */
  readonly name: string;
  readonly language: string;
  readonly english: DataSet;
  readonly other: DataSet;
}

/** How near the answers in both languages are. */
export interface Agreement {
  readonly pairs: number;
  /** The share of pairs with the same answer; a refused row has none. */
  readonly same: number;
  /**
   * The median of how far apart the probabilities of the English answer are, of pairs that are both answered;
   * NaN without such.
   */
  readonly apart: number;
}

/** The agreement of each language's set with the English one. */
export interface ParallelQuality {
  readonly sets: readonly (Pick<ParallelSets, 'name' | 'language'> & Agreement)[];
  /** All pairs together; undefined if no sets are parallel. */
  readonly all: Agreement | undefined;
}

const ENGLISH = 'en';
/** Below this share of equal labels the rows are others. */
const SAME_LABELS = 0.8;

/** The sets that are parallel to an English one among them, in their order. */
export function parallelSets(sets: readonly DataSet[]): readonly ParallelSets[] {
  return sets.flatMap((other): ParallelSets[] => {
    const { language } = other;
    if (language === undefined || language === ENGLISH || !other.name.endsWith(`_${language}`)) return [];
    const name = other.name.slice(0, -language.length - 1);
    const english = sets.find((set) => set.language === ENGLISH && set.name === `${name}_${ENGLISH}`);
    return english !== undefined && areParallel(english, other) ? [{ name, language, english, other }] : [];
  });
}

function areParallel({ rows }: DataSet, other: DataSet): boolean {
  const same = rows.filter(({ label }, place) => other.rows[place]?.label === label).length;
  return rows.length === other.rows.length && same >= SAME_LABELS * rows.length;
}

/** How near answers are to the English ones of the same places. */
export function agreement(english: readonly Answer[], other: readonly Answer[]): Agreement {
  const apart: number[] = [];
  const same = english.map((one, place) => {
    const two = other[place];
    if (one.kind !== 'decided' || two?.kind !== 'decided') return 0;
    apart.push(Math.abs(one.confidence - (two.probabilities.get(one.choice) ?? 0)));
    return one.choice === two.choice ? 1 : 0;
  });
  return { pairs: same.length, same: mean(same), apart: median(apart) };
}

/** The agreement of all parallel sets; `answersOf` gives those of a set. */
export function parallelQuality(
  sets: readonly DataSet[],
  answersOf: (set: DataSet) => readonly Answer[],
): ParallelQuality {
  const found = parallelSets(sets);
  return {
    sets: found.map(({ name, language, english, other }) => ({
      name,
      language,
      ...agreement(answersOf(english), answersOf(other)),
    })),
    all:
      found.length === 0
        ? undefined
        : agreement(
            found.flatMap(({ english }) => answersOf(english)),
            found.flatMap(({ other }) => answersOf(other)),
          ),
  };
}
