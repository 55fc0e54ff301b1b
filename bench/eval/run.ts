/** Measures models on data sets. */
import { type Answer, askAll, type Service } from './ask.ts';
import type { DataSet } from './data-sets.ts';
import { average, type Bin, judge, measure, type Quality, reliability } from './metrics.ts';

/** What was measured of one model. */
export interface ModelQuality {
  readonly model: string;
  /** By the name of the set, in the order of the sets. */
  readonly sets: ReadonlyMap<string, Quality>;
  readonly mean: Quality;
  /** Over the rows of all sets. */
  readonly bins: readonly Bin[];
}

/** Asks every model about every set, one set after the other. `progress` hears of each that is done. */
export async function evaluate(
  service: Service,
  models: readonly string[],
  sets: readonly DataSet[],
  progress: (line: string) => void = () => {},
): Promise<readonly ModelQuality[]> {
  const results: ModelQuality[] = [];
  for (const model of models) {
    const qualities = new Map<string, Quality>();
    const answered: (readonly [DataSet, readonly Answer[]])[] = [];
    for (const set of sets) {
      const answers = await askAll(service, model, set.rows);
      const quality = measure(set, answers);
      qualities.set(set.name, quality);
      answered.push([set, answers]);
      progress(`${model} ${set.name}: accuracy ${quality.accuracy.toFixed(3)} of ${quality.rows} rows`);
    }
    const judged = answered.flatMap(([set, answers]) => judge(set.rows, answers));
    results.push({ model, sets: qualities, mean: average([...qualities.values()]), bins: reliability(judged) });
  }
  return results;
}
