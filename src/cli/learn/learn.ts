/**
 * `umpire learn …`: lets a catalog learn from its owner's labelled examples, or forget what it learned. And an
 * operator's change to what a model reads for a catalog's choices: what the catalog learned was fitted to the scores of
 * the texts that were read before, so it never outlives them. In the same write, whole or not at all, it is learned
 * anew from kept examples, or given up if the operator asks for that.
 */
import { type Lesson, learn, MIN_EXAMPLES } from '../../learning/learn.ts';
import type { AnswerQuality } from '../../learning/quality.ts';
import type { ScoredExample } from '../../learning/regression.ts';
import { basisOf } from '../../stores/catalog-additions.ts';
import { withAdditions } from '../../stores/catalog-record.ts';
import type { CatalogRecord, CatalogStore, StampedCatalog } from '../../stores/catalog-store.ts';
import { ownerFrom, readArguments } from '../arguments.ts';
import { type Command, flag, OWNER_OPTION, option, type Terminal, UsageError } from '../command.ts';
import { readTextFile } from '../decide/lines.ts';
import { EXAMPLE_OPTIONS, readingFrom } from '../decide/records.ts';
import { patience, STORE_ENVIRONMENT, withStores } from '../with-stores.ts';
import { type Example, type ExampleFile, exampleLines, problemLines, readExamples } from './examples.ts';
import { type OwnEngine, withOwnEngine } from './own-engine.ts';
import { figureLines, percent, thresholdLines } from './report-page.ts';

const OPTIONS = {
  catalog: option('ID', 'the catalog; needed'),
  owner: OWNER_OPTION,
  ...EXAMPLE_OPTIONS,
  'keep-examples': flag('keeps the examples beside the catalog, for --refresh'),
  refresh: flag('learns anew from the examples that are kept, for a new revision'),
  forget: flag('takes back what was learned, and the kept examples'),
} as const;

/** The command `umpire learn`. */
export const LEARN_COMMAND: Command = {
  name: 'learn',
  usage: '--catalog ID --owner NAME [OPTION]… (EXAMPLES [--keep-examples] | --refresh | --forget)',
  summary: 'lets a catalog learn from labelled examples',
  notes: [
    'The catalog learns a temperature, a bias for each choice or weights on the text, as far as each helps on held-out examples. If none helps by more than chance, nothing is changed.',
    'If most choices have the same number of examples, these are taken as picked that way, and how often a choice occurs is not learned. Otherwise it is.',
  ],
  positionals: [['EXAMPLES', 'JSON lines {"input": …, "instruction": …, "label": …}, or CSV with such a header']],
  options: OPTIONS,
  environment: [...STORE_ENVIRONMENT, 'UMPIRE_MODELS_DIR', 'UMPIRE_INFERENCE_SERVERS'],
  failure: 'learning does not help',
  async run(args, terminal) {
    const { values, positionals } = readArguments(args, OPTIONS, [], 1);
    const owner = ownerFrom(values.owner);
    const { catalog: id } = values;
    if (id === undefined) throw new UsageError('--catalog ID is needed');
    const [file] = positionals;
    if ([file !== undefined, values.refresh, values.forget].filter((each) => each === true).length !== 1) {
      throw new UsageError('either a file, --refresh or --forget is needed');
    }
    const text = file === undefined ? undefined : await readTextFile(file);
    await withStores(terminal, async ({ catalogs }) => {
      const found = await existing(catalogs, owner, id);
      if (values.forget === true) {
        await forget(catalogs, owner, found, terminal);
        return;
      }
      const kept = text ?? (await catalogs.examples(owner, id, patience()));
      if (kept === '') throw new Error(`no examples are kept beside '${id}'`);
      // What is kept has the usual fields.
      const examples = readExamples(kept, found.record.choices, text === undefined ? undefined : readingFrom(values));
      for (const note of examples.notes) terminal.err(note);
      // Without --keep-examples the kept ones are deleted: they would be taken for those of this lesson.
      const others = values['keep-examples'] === true ? exampleLines(examples.examples) : '';
      const keep = values.refresh === true ? undefined : others;
      await learnFrom({ catalogs, owner, found, terminal }, examples, keep);
    });
  },
};

async function forget(catalogs: CatalogStore, owner: string, found: StampedCatalog, terminal: Terminal): Promise<void> {
  const { id, additions, calibrations } = found.record;
  if (additions?.learned === undefined && calibrations === undefined)
    throw new Error(`catalog '${id}' has learned nothing`);
  await replaceCatalog(catalogs, owner, found, withLearned(found.record, undefined), '');
  terminal.out(`${id}: has forgotten; every server decides zero-shot within a second`);
}

async function learnFrom(where: LearningCatalog, file: ExampleFile, keep: string | undefined): Promise<void> {
  const { terminal } = where;
  const { record } = where.found;
  const { examples } = file;
  await withOwnEngine(terminal, record.model, async (engine) => {
    const problems = [...(await engine.problemsOf(file))];
    const few = `${examples.length} examples are too few: ${MIN_EXAMPLES} are the least, some for each choice are better`;
    if (examples.length < MIN_EXAMPLES) problems.push(few);
    if (problems.length > 0) throw new Error(`${problems.join('\n')}\nnothing was changed`);
    terminal.out(`deciding ${examples.length} examples with ${engine.name}`);
    await keepLesson(where, await lessonOf(engine, record, examples), keep);
  });
}

/** The catalog that learns, and where it says what it learns. */
export interface LearningCatalog {
  readonly catalogs: CatalogStore;
  readonly owner: string;
  readonly found: StampedCatalog;
  readonly terminal: Terminal;
}

/**
 * Prints a lesson and writes it to the catalog. Throws Error if nothing helps, or if the catalog was changed or deleted
 * meanwhile. `keep`: the examples to keep beside it; undefined leaves those that are there.
 */
export async function keepLesson(
  { catalogs, owner, found, terminal }: LearningCatalog,
  lesson: Lesson,
  keep?: string,
): Promise<void> {
  for (const line of lessonLines(lesson)) terminal.out(line);
  if (lesson.record === undefined)
    throw new Error(
      'nothing beats the model as it is by more than chance; nothing was changed. More examples may tell',
    );
  const { rung, digest, model } = lesson.record;
  await replaceCatalog(catalogs, owner, found, withLearned(found.record, lesson.record), keep);
  const end = 'every server decides by it within a second';
  terminal.out(`${found.record.id}: learned ${rung} for ${model}, digest ${digest}; ${end}`);
}

/** `--forget`, for the commands that change a catalog. */
export const FORGET_OPTION = flag('gives up what the catalog learned, in place of learning it anew from kept examples');

/** Which catalog is changed, and what the operator wants of the change. */
export interface CatalogChange extends LearningCatalog {
  readonly forget: boolean;
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
async function replaceCatalog(
  catalogs: CatalogStore,
  owner: string,
  { stamp }: StampedCatalog,
  record: CatalogRecord,
  examples?: string,
): Promise<void> {
  const done = await catalogs.replace(owner, stamp, record, patience(), examples);
  const changed = 'was changed or deleted while this ran, and stays as it is now; run it again';
  if (!done) throw new Error(`catalog '${record.id}' ${changed}`);
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
  const [broken] = problemLines(all.problems);
  if (broken !== undefined)
    throw new Error(`the examples that are kept beside '${id}' are broken: ${broken}; nothing was changed`);
  const examples = all.examples.filter(({ label }) => next.choices.includes(label));
  const learned = record.additions?.learned;
  const reads = (each: CatalogRecord): string => basisOf(each.choices, each.additions?.descriptions);
  const isStale = reads(record) !== reads(next);
  const hasLearned = learned !== undefined || record.calibrations !== undefined;
  await withOwnEngine(terminal, record.model, async (engine) => {
    const isLost = isStale && hasLearned && !forget && examples.length < MIN_EXAMPLES;
    const wrong = [...(await check(engine))];
    if (isLost)
      wrong.push(
        `what '${id}' learned belongs to its choices as they are read now, and too few examples are kept to learn it anew: --forget gives it up`,
      );
    if (wrong.length > 0) throw new Error(`${wrong.join('\n')}\nnothing was changed`);
    let changed = isStale || forget ? withLearned(next, undefined) : next;
    if (isStale && hasLearned && !forget) {
      terminal.out(`learning anew from ${examples.length} kept examples with ${engine.name}`);
      const lesson = await lessonOf(engine, next, examples);
      for (const line of lessonLines(lesson)) terminal.out(line);
      changed = withLearned(next, lesson.record);
    }
    await replaceCatalog(catalogs, owner, found, changed, exampleLines(examples));
    const now = changed.additions?.learned;
    const end = 'on every server within a second';
    const digest = now === undefined ? '' : `, digest ${now.digest}`;
    const given = now === undefined && hasLearned ? ', and what was learned is given up: it decides zero-shot' : '';
    terminal.out(`${id}: changed${digest}${given}, ${end}`);
  });
}

/** Scores examples in the same way as decisions with the catalog, and learns from the scores. */
async function lessonOf(engine: OwnEngine, record: CatalogRecord, examples: readonly Example[]): Promise<Lesson> {
  const { choices, additions } = record;
  const facts = { model: engine.name, basis: basisOf(choices, additions?.descriptions) };
  return learn(await scoredExamples(engine, record, examples), choices.toSorted(), facts);
}

/** The examples with the scores of a model, as what is learned from. Throws Error if it does not take all of them. */
export async function scoredExamples(
  engine: OwnEngine,
  record: Pick<CatalogRecord, 'choices' | 'additions'>,
  examples: readonly Example[],
): Promise<readonly ScoredExample[]> {
  const sorted = record.choices.toSorted();
  const scored = await engine.scoreAll(examples, record);
  return scored.map(({ probabilities, vector }, i) => {
    return { probabilities, vector, label: sorted.indexOf((examples[i] as Example).label) };
  });
}

/** The record with this learned state in place of its own, and of the calibrations of earlier releases. */
function withLearned({ calibrations: _, ...record }: CatalogRecord, learned: Lesson['record']): CatalogRecord {
  return withAdditions(record, { ...record.additions, learned });
}

/** The results of a lesson on held-out examples, as lines for a terminal. */
export function lessonLines({ rungs, before, after, record }: Lesson): readonly string[] {
  const figures = (title: string, quality: AnswerQuality): readonly string[] => [
    title,
    ...[...figureLines(quality), ...thresholdLines(quality)].map((line) => `  ${line}`),
  ];
  return [
    'on held-out examples:',
    ...rungs.map(({ rung, logLoss, accuracy, gain, error, taken }) => {
      const gained = `, gain ${gain.toFixed(4)} ± ${error.toFixed(4)}: ${taken ? 'taken' : 'not taken'}`;
      return `  ${rung.padEnd(12)} log loss ${logLoss.toFixed(4)}, right ${percent(accuracy)}${rung === 'zero-shot' ? '' : gained}`;
    }),
    ...figures('before:', before),
    ...(record === undefined ? [] : figures('after:', after)),
  ];
}
