/** What a catalog learns from examples, for the commands that teach it or change it. */
import { createReadChoices } from '../../domain/read-choices.ts';
import { type Lesson, learn } from '../../learning/learn.ts';
import { basisOf } from '../../stores/catalog-additions.ts';
import type { CatalogRecord } from '../../stores/catalog-store.ts';
import type { Example } from './examples.ts';
import type { OwnEngine } from './own-engine.ts';
import { figureLines, thresholdLines } from './report-page.ts';

/** Scores examples in the same way as decisions with the catalog, and learns from the scores. */
export async function lessonOf(
  engine: OwnEngine,
  { choices, additions }: CatalogRecord,
  examples: readonly Example[],
): Promise<Lesson> {
  const sorted = choices.toSorted();
  const read = createReadChoices(sorted, additions?.descriptions ?? {});
  const scored = await engine.scoreAll(examples, read.texts);
  return learn(
    scored.map(({ probabilities, vector }, i) => ({
      probabilities: read.inOrder(probabilities),
      vector,
      label: sorted.indexOf((examples[i] as Example).label),
    })),
    sorted,
    { model: engine.name, basis: basisOf(choices, additions?.descriptions) },
  );
}

/** The record with what a lesson taught, in place of what it learned before. */
export function taught(record: CatalogRecord, lesson: Lesson): CatalogRecord {
  const next = withoutLearned(record);
  if (lesson.record === undefined) return next;
  return { ...next, additions: { ...next.additions, learned: lesson.record } };
}

/** The record without learned state, and without the calibrations of earlier releases that learned state replaces. */
export function withoutLearned({ calibrations: _, additions, ...record }: CatalogRecord): CatalogRecord {
  const descriptions = additions?.descriptions ?? {};
  return Object.keys(descriptions).length === 0 ? record : { ...record, additions: { descriptions } };
}

/** The results of a lesson on held-out examples, as lines for a terminal. */
export function lessonLines({ rungs, before, after, record }: Lesson): readonly string[] {
  return [
    'on held-out examples:',
    ...rungs.map(
      ({ rung, logLoss, accuracy, gain, error, taken }) =>
        `  ${rung.padEnd(12)} log loss ${logLoss.toFixed(4)}, right ${(100 * accuracy).toFixed(1)} %${
          rung === 'zero-shot'
            ? ''
            : `, gain ${gain.toFixed(4)} ± ${error.toFixed(4)}: ${taken ? 'taken' : 'not taken'}`
        }`,
    ),
    'before:',
    ...[...figureLines(before), ...thresholdLines(before)].map((line) => `  ${line}`),
    ...(record === undefined
      ? []
      : ['after:', ...[...figureLines(after), ...thresholdLines(after)].map((line) => `  ${line}`)]),
  ];
}
