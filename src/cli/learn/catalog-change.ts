/**
 * An operator's change to what a model reads for a catalog's choices: one write, whole or not at all. What the catalog
 * learned was fitted to the scores of the texts that were read before, so it never outlives them: in the same write it
 * is learned anew from kept examples, or given up if the operator asks for that.
 */
import { MIN_EXAMPLES } from '../../learning/learn.ts';
import { basisOf } from '../../stores/catalog-additions.ts';
import type { CatalogRecord, CatalogStore, StampedCatalog } from '../../stores/catalog-store.ts';
import { flag, type Terminal, UsageError } from '../command.ts';
import { patience } from '../with-stores.ts';
import { exampleLines, problemLines, readExamples } from './examples.ts';
import { lessonLines, lessonOf, taught, withoutLearned } from './lessons.ts';
import { type OwnEngine, withOwnEngine } from './own-engine.ts';

/** `--forget`, for the commands that change a catalog. */
export const FORGET_OPTION = flag('gives up what the catalog learned, in place of learning it anew from kept examples');

/** Which catalog is changed, and what the operator wants of the change. */
export interface CatalogChange {
  readonly catalogs: CatalogStore;
  readonly owner: string;
  readonly found: StampedCatalog;
  readonly forget: boolean;
  readonly terminal: Terminal;
}

/** The owner's catalog. Throws UsageError without an id, Error if there is none, StoreCorrupt. */
export async function existing(catalogs: CatalogStore, owner: string, id: string | undefined): Promise<StampedCatalog> {
  if (id === undefined) throw new UsageError('--catalog ID is needed');
  const found = await catalogs.read(owner, id, patience());
  if (found === undefined) throw new Error(`${owner} has no catalog '${id}'`);
  return found;
}

/**
 * Writes a record in place of the one that was found. Throws Error if the catalog was changed or deleted meanwhile.
 * `examples`: the examples to keep beside it; undefined leaves those that are there.
 */
export async function replaceCatalog(
  catalogs: CatalogStore,
  owner: string,
  { stamp }: StampedCatalog,
  record: CatalogRecord,
  examples?: string,
): Promise<void> {
  const done = await catalogs.replace(owner, stamp, record, patience(), examples);
  if (!done)
    throw new Error(
      `catalog '${record.id}' was changed or deleted while this ran, and stays as it is now; run it again`,
    );
}

/**
 * Changes a catalog to a record with other choices or descriptions. `check`: what the model cannot take of it, a
 * problem a line. Throws Error with all problems, and has changed nothing then.
 */
export async function changeCatalog(
  { catalogs, owner, found, forget, terminal }: CatalogChange,
  next: CatalogRecord,
  check: (engine: OwnEngine) => Promise<readonly string[]>,
): Promise<void> {
  const { record } = found;
  const { id } = record;
  const kept = await catalogs.examples(owner, id, patience());
  const all = readExamples(kept, record.choices);
  if (all.problems.length > 0)
    throw new Error(
      `the examples that are kept beside '${id}' are broken: ${problemLines(all.problems)[0]}; nothing was changed`,
    );
  const examples = all.examples.filter(({ label }) => next.choices.includes(label));
  const learned = record.additions?.learned;
  const reads = (each: CatalogRecord): string => basisOf(each.choices, each.additions?.descriptions);
  const isStale = reads(record) !== reads(next);
  const hasLearned = learned !== undefined || record.calibrations !== undefined;
  await withOwnEngine(terminal, record.model, async (engine) => {
    const isLost = isStale && hasLearned && !forget && examples.length < MIN_EXAMPLES;
    const wrong = [...(await check(engine)), ...(isLost ? [lostWithout(id)] : [])];
    if (wrong.length > 0) throw new Error(`${wrong.join('\n')}\nnothing was changed`);
    let changed = isStale || forget ? withoutLearned(next) : next;
    if (isStale && hasLearned && !forget) {
      terminal.out(`learning anew from ${examples.length} kept examples with ${engine.name}`);
      const lesson = await lessonOf(engine, next, examples);
      for (const line of lessonLines(lesson)) terminal.out(line);
      changed = taught(next, lesson);
    }
    await replaceCatalog(catalogs, owner, found, changed, exampleLines(examples));
    const now = changed.additions?.learned;
    const end = 'on every server within a second';
    if (now !== undefined) terminal.out(`${id}: changed, digest ${now.digest}, ${end}`);
    else if (hasLearned) terminal.out(`${id}: changed, and what was learned is given up: it decides zero-shot, ${end}`);
    else terminal.out(`${id}: changed, ${end}`);
  });
}

function lostWithout(id: string): string {
  return `what '${id}' learned belongs to its choices as they are read now, and too few examples are kept to learn it anew: --forget gives it up`;
}
