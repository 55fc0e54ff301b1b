/**
 * Asks the same questions with their choices in other words. `wordings.jsonl` has a line for each list of choices:
 * three lists that say the same in the same order, the first of which is the one that sets have.
 */
import { readFileSync } from 'node:fs';
import type { Answer } from './ask.ts';
import type { DataSet, Row } from './data-sets.ts';
import { mean } from './metrics.ts';

/** How much the wording of choices decides. */
export interface WordingQuality {
  /** Rows that have other wordings. */
  readonly rows: number;
  /** The share of right answers in each wording, the sets' own first. */
  readonly accuracies: readonly number[];
  /** The share of rows whose answers mean the same in all wordings; a refused row has no answer. */
  readonly same: number;
}

type Lists = readonly (readonly string[])[];

const NAME = /^wording \d$/;

/** The lists of choices that mean the same, as `wordings.jsonl` has them. */
export function readWordings(): readonly Lists[] {
  const lines = readFileSync(new URL('wordings.jsonl', import.meta.url), 'utf8')
    .split('\n')
    .filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Lists);
}

/** The rows that have other wordings, of all sets together: one set for each wording, in the same order. */
export function rewordedSets(sets: readonly DataSet[], wordings: readonly Lists[]): readonly DataSet[] {
  const known = new Map(wordings.map((lists) => [JSON.stringify(lists[0]), lists]));
  const rows = sets.flatMap((set) => set.rows.filter(({ choices }) => known.has(JSON.stringify(choices))));
  const count = Math.min(...wordings.map((lists) => lists.length));
  return Array.from({ length: count }, (_, wording) => ({
    name: `wording ${wording + 1}`,
    kind: undefined,
    language: undefined,
    fixedChoices: false,
    pairs: false,
    rows: rows.map((row): Row => {
      const choices = known.get(JSON.stringify(row.choices))?.[wording] as readonly string[];
      return { ...row, choices, label: choices[row.choices.indexOf(row.label)] as string };
    }),
  }));
}

/** The quality over `rewordedSets`; undefined if the sets are others. `answersOf`: the answers to a set. */
export function wordingQuality(
  sets: readonly DataSet[],
  answersOf: (set: DataSet) => readonly Answer[],
): WordingQuality | undefined {
  const reworded = sets.filter(({ name }) => NAME.test(name));
  if (reworded.length === 0) return undefined;
  const places = reworded.map((set) => {
    const answers = answersOf(set);
    return set.rows.map(({ choices }, row) => {
      const answer = answers[row];
      return answer?.kind === 'decided' ? choices.indexOf(answer.choice) : -1;
    });
  });
  const [first = []] = places;
  return {
    rows: first.length,
    accuracies: reworded.map(({ rows }, wording) =>
      mean(rows.map(({ choices, label }, row) => (choices[places[wording]?.[row] ?? -1] === label ? 1 : 0))),
    ),
    same: mean(first.map((place, row) => (place >= 0 && places.every((other) => other[row] === place) ? 1 : 0))),
  };
}
