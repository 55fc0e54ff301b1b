/** `umpire learn …`: lets a catalog learn from its owner's labelled examples, or forget what it learned. */
import { MIN_EXAMPLES } from '../../learning/learn.ts';
import type { CatalogStore, StampedCatalog } from '../../stores/catalog-store.ts';
import { ownerFrom, readArguments } from '../arguments.ts';
import { type Command, flag, OWNER_OPTION, option, type Terminal, UsageError } from '../command.ts';
import { readTextFile } from '../decide/lines.ts';
import { patience, STORE_ENVIRONMENT, withStores } from '../with-stores.ts';
import { EXAMPLE_OPTIONS, type ExampleFile, exampleLines, exampleOptions, readExamples } from './examples.ts';
import { existing, lessonLines, lessonOf, replaceCatalog, taught, withoutLearned } from './lessons.ts';
import { withOwnEngine } from './own-engine.ts';

const OPTIONS = {
  catalog: option('ID', 'the catalog; needed'),
  owner: OWNER_OPTION,
  instruction: option('TEXT', 'the instruction of examples that have none'),
  ...EXAMPLE_OPTIONS,
  'keep-examples': flag('keeps the examples beside the catalog, for --refresh'),
  refresh: flag('learns anew from the examples that are kept, for a new revision'),
  forget: flag('takes back what was learned, and the kept examples'),
} as const;

/** The command `umpire learn`. */
export const LEARN_COMMAND: Command = {
  name: 'learn',
  usage:
    '--catalog ID --owner NAME [--instruction TEXT] [--separator SIGN] [--input-column NAME] [--instruction-column NAME] [--label-column NAME] (EXAMPLES [--keep-examples] | --refresh | --forget)',
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
      const options = text === undefined ? {} : exampleOptions(values);
      const examples = readExamples(kept, found.record.choices, options);
      for (const note of examples.notes) terminal.err(note);
      // Without --keep-examples the kept ones are deleted: they would be taken for those of this lesson.
      const others = values['keep-examples'] === true ? exampleLines(examples.examples) : '';
      const keep = values.refresh === true ? undefined : others;
      await teach(catalogs, owner, found, examples, keep, terminal);
    });
  },
};

async function forget(catalogs: CatalogStore, owner: string, found: StampedCatalog, terminal: Terminal): Promise<void> {
  const { id, additions, calibrations } = found.record;
  if (additions?.learned === undefined && calibrations === undefined)
    throw new Error(`catalog '${id}' has learned nothing`);
  await replaceCatalog(catalogs, owner, found, withoutLearned(found.record), '');
  terminal.out(`${id}: has forgotten; every server decides zero-shot within a second`);
}

async function teach(
  catalogs: CatalogStore,
  owner: string,
  found: StampedCatalog,
  file: ExampleFile,
  keep: string | undefined,
  terminal: Terminal,
): Promise<void> {
  const { record } = found;
  const { examples } = file;
  await withOwnEngine(terminal, record.model, async (engine) => {
    const problems = [...(await engine.problemsOf(file))];
    const few = `${examples.length} examples are too few: ${MIN_EXAMPLES} are the least, some for each choice are better`;
    if (examples.length < MIN_EXAMPLES) problems.push(few);
    if (problems.length > 0) throw new Error(`${problems.join('\n')}\nnothing was changed`);
    terminal.out(`deciding ${examples.length} examples with ${engine.name}`);
    const lesson = await lessonOf(engine, record, examples);
    for (const line of lessonLines(lesson)) terminal.out(line);
    if (lesson.record === undefined)
      throw new Error(
        'nothing beats the model as it is by more than chance; nothing was changed. More examples may tell',
      );
    const { rung, digest } = lesson.record;
    await replaceCatalog(catalogs, owner, found, taught(record, lesson), keep);
    const end = 'every server decides by it within a second';
    terminal.out(`${record.id}: learned ${rung} for ${engine.name}, digest ${digest}; ${end}`);
  });
}
