/**
 * Compares the same decisions in several languages. Sets whose names differ only in the language (`topics_en`,
 * `topics_de`) are parallel if they have equally many rows with the same labels, row by row. A few labels may differ,
 * since people assigned them.
 */
import type { Answer } from './ask.ts';
import type { DataSet } from './data-sets.ts';
import { mean, median } from './metrics.ts';

/** A set in English and its parallel in another language. */
export interface ParallelSets {
  /** The name without the language. */
  readonly name: string;
  readonly language: string;
  readonly english: DataSet;
  readonly other: DataSet;
}

/** How far the answers in two languages agree. */
export interface Agreement {
  readonly pairs: number;
  /** The share of pairs with the same answer; a refused row has no answer. */
  readonly same: number;
  /**
   * The median distance between the probabilities that both languages give the English answer, over pairs with two
   * answers; NaN if there is none.
   */
  readonly apart: number;
}

/** The agreement of each language's set with the English one. */
export interface ParallelQuality {
  readonly sets: readonly (Pick<ParallelSets, 'name' | 'language'> & Agreement)[];
  /** The agreement over all pairs; undefined if no sets are parallel. */
  readonly all: Agreement | undefined;
}

/** The language that all others are compared with. */
const ENGLISH = 'en';
/** The share of equal labels from which on two sets are taken to have the same rows. */
const SAME_LABELS = 0.8;

/** The sets that are parallel to an English one of the list, in their order. */
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

/** The agreement of answers with the English ones at the same places. */
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

/** The agreement of all parallel sets. `answersOf`: the answers to a set. */
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
