/** Measures models on data sets. */
import { type Answer, askAll, type Service } from './ask.ts';
import type { DataSet } from './data-sets.ts';
import { average, type Bin, judge, measure, type Quality, reliability } from './metrics.ts';
import { type ParallelQuality, parallelQuality } from './parallel.ts';
import { type WordingQuality, wordingQuality } from './wordings.ts';

/** What was measured of a model. */
export interface ModelQuality {
  readonly model: string;
  /** By the name of the set, in the order of the sets. */
  readonly sets: ReadonlyMap<string, Quality>;
  readonly mean: Quality;
  /** The means over the sets of each kind; sets without a kind are left out. */
  readonly kinds: ReadonlyMap<string, Quality>;
  /** The quality over all rows as one set: it shows the calibration if the sets are small. */
  readonly pooled: Quality;
  /** The reliability over the rows of all sets. */
  readonly bins: readonly Bin[];
  readonly parallel: ParallelQuality;
  /** Undefined unless the sets are those of `rewordedSets`. */
  readonly wordings: WordingQuality | undefined;
}

/** Asks every model about every set, one set after another. `progress` is called with a line for each. */
export async function evaluate(
  service: Service,
  models: readonly string[],
  sets: readonly DataSet[],
  progress: (line: string) => void = () => {},
): Promise<readonly ModelQuality[]> {
  const results: ModelQuality[] = [];
  for (const model of models) {
    const qualities = new Map<string, Quality>();
    const answered = new Map<DataSet, readonly Answer[]>();
    for (const set of sets) {
      const answers = await askAll(service, model, set.rows);
      const quality = measure(set, answers);
      qualities.set(set.name, quality);
      answered.set(set, answers);
      progress(`${model} ${set.name}: accuracy ${quality.accuracy.toFixed(3)} of ${quality.rows} rows`);
    }
    const answersOf = (set: DataSet): readonly Answer[] => answered.get(set) ?? [];
    const rows = sets.flatMap((set) => set.rows);
    const answers = [...answered.values()].flat();
    const kinds = Map.groupBy(
      sets.filter(({ kind }) => kind !== undefined),
      ({ kind }) => kind as string,
    );
    results.push({
      model,
      sets: qualities,
      mean: average([...qualities.values()]),
      kinds: new Map(
        [...kinds].sort().map(([kind, of]) => [kind, average(of.map(({ name }) => qualities.get(name) as Quality))]),
      ),
      pooled: measure(
        { name: 'all rows', kind: undefined, language: undefined, fixedChoices: false, pairs: false, rows },
        answers,
      ),
      bins: reliability(judge(rows, answers)),
      parallel: parallelQuality(sets, answersOf),
      wordings: wordingQuality(sets, answersOf),
    });
  }
  return results;
}
