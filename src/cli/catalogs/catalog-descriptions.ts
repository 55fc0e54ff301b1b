/**
 * `umpire catalogs describe` and `umpire catalogs replace`: change what a model reads for a catalog's choices, and the
 * choices themselves.
 */
import { versionFault } from '../../domain/catalogs.ts';
import { textOfChoice } from '../../stores/catalog-additions.ts';
import { withAdditions } from '../../stores/catalog-record.ts';
import type { CatalogRecord } from '../../stores/catalog-store.ts';
import { ownerFrom, readArguments } from '../arguments.ts';
import { CATALOG_OPTIONS, type Command, flag, option, UsageError } from '../command.ts';
import { choicesIn } from '../decide/decide.ts';
import { readTextFile } from '../decide/lines.ts';
import { entriesOf } from '../decide/records.ts';
import { type LineProblem, problemLines } from '../learn/examples.ts';
import { changeCatalog, existing, FORGET_OPTION } from '../learn/learn.ts';
import type { OwnEngine } from '../learn/own-engine.ts';
import { STORE_ENVIRONMENT, withStores } from '../with-stores.ts';

const DESCRIBE = {
  ...CATALOG_OPTIONS,
  remove: flag('takes descriptions away: those of the choices in FILE, or all'),
  forget: FORGET_OPTION,
} as const;
const REPLACE = {
  ...CATALOG_OPTIONS,
  version: option('LABEL', "the catalog's new version", 'as it is'),
  forget: FORGET_OPTION,
} as const;
const ENVIRONMENT = [...STORE_ENVIRONMENT, 'UMPIRE_MODELS_DIR', 'UMPIRE_INFERENCE_SERVERS'];
/** The paragraph about learned state on the help pages of both commands. */
const LEARNS_ANEW =
  'What was learned belongs to the choices as they were read before: it is learned anew from kept examples (learn --keep-examples). Without them --forget is needed, and the catalog decides zero-shot until it learns.';

/** The commands `umpire catalogs describe` and `umpire catalogs replace`. */
export const CATALOG_DESCRIPTION_COMMANDS: readonly Command[] = [
  {
    name: 'catalogs describe',
    usage: '--owner NAME --catalog ID (FILE | --remove [FILE]) [--forget]',
    summary: "says what a catalog's choices mean",
    notes: [
      'The model reads "choice: description" in place of the choice; answers and the catalog have the bare choice. Descriptions of choices that FILE does not name stay.',
      LEARNS_ANEW,
    ],
    positionals: [['FILE', 'JSON lines {"choice": …, "description": …}, or CSV with such a header']],
    options: DESCRIBE,
    environment: ENVIRONMENT,
    async run(args, terminal) {
      const { values, positionals } = readArguments(args, DESCRIBE, [], 1);
      const owner = ownerFrom(values.owner);
      const [file] = positionals;
      const removes = values.remove === true;
      if (file === undefined && !removes) throw new UsageError('FILE or --remove is needed');
      const text = file === undefined ? undefined : await readTextFile(file);
      await withStores(terminal, async ({ catalogs }) => {
        const found = await existing(catalogs, owner, values.catalog);
        const { choices, additions } = found.record;
        const before = additions?.descriptions ?? {};
        const { described, lines, problems } = readDescriptions(text ?? '', choices, removes);
        if (text !== undefined && problems.length === 0 && described.size === 0) throw new Error('the file is empty');
        const named = removes ? (text === undefined ? choices : [...described.keys()]) : [];
        const descriptions = Object.fromEntries([
          ...Object.entries(before).filter(([choice]) => !named.includes(choice)),
          ...(removes ? [] : described),
        ]);
        const next = withAdditions(found.record, { ...additions, descriptions });
        const change = { catalogs, owner, found, forget: values.forget === true, terminal };
        await changeCatalog(change, next, async (engine) =>
          problemLines([...problems, ...(await textProblems(engine, next, lines))]),
        );
      });
    },
  },
  {
    name: 'catalogs replace',
    usage: '--owner NAME --catalog ID [--version LABEL] [--forget] FILE',
    summary: "replaces a catalog's choices, at once and whole",
    notes: [
      'Descriptions and kept examples of the choices that remain are kept. A decision is made by the old choices or by the new ones, never by some of both.',
      LEARNS_ANEW,
    ],
    positionals: [['FILE', 'the new choices: a JSON array, or one a line']],
    options: REPLACE,
    environment: ENVIRONMENT,
    async run(args, terminal) {
      const { values, positionals } = readArguments(args, REPLACE, ['FILE']);
      const owner = ownerFrom(values.owner);
      const { version } = values;
      const fault = versionFault(version);
      if (fault !== undefined) throw new UsageError(`--version: ${fault.message}`);
      const choices = await choicesIn(positionals[0] as string, terminal);
      await withStores(terminal, async ({ catalogs }) => {
        const found = await existing(catalogs, owner, values.catalog);
        const { record } = found;
        const described = Object.entries(record.additions?.descriptions ?? {});
        const kept = described.filter(([choice]) => choices.includes(choice));
        const bare = { ...record, choices, version: version ?? record.version };
        const next = withAdditions(bare, { ...record.additions, descriptions: Object.fromEntries(kept) });
        const added = choices.filter((choice) => !record.choices.includes(choice)).length;
        const remain = choices.length - added;
        terminal.out(
          `${record.id}: ${added} choices are new, ${remain} remain, ${record.choices.length - remain} go; ${kept.length} descriptions remain`,
        );
        const change = { catalogs, owner, found, forget: values.forget === true, terminal };
        await changeCatalog(change, next, async (engine) => {
          const most = engine.revision.limits.choices;
          const tooMany = `${choices.length} choices; ${engine.name} takes at most ${most}`;
          return [...(choices.length > most ? [tooMany] : []), ...problemLines(await textProblems(engine, next))];
        });
      });
    },
  },
];

/** Reads a file of descriptions. `removes`: only its choices are read, since their descriptions are to be removed. */
function readDescriptions(text: string, choices: readonly string[], removes: boolean) {
  const problems: LineProblem[] = [];
  const described = new Map<string, string>();
  const lines = new Map<string, number>();
  for (const { line, read } of entriesOf(text)) {
    const fail = (problem: string): void => void problems.push({ line, problem });
    const { choice, description } = 'value' in read ? read.value : {};
    const missing = Object.entries(removes ? { choice } : { choice, description })
      .filter(([, value]) => typeof value !== 'string' || value.trim() === '')
      .map(([name]) => name);
    if ('problem' in read) fail(read.problem);
    else if (missing.length > 0) fail(`${missing.join(' and ')} must be a text that is not empty`);
    if (typeof choice !== 'string' || missing.includes('choice')) continue;
    const earlier = lines.get(choice);
    if (!choices.includes(choice)) fail(`${JSON.stringify(choice)} is not one of the choices`);
    else if (earlier !== undefined) fail(`${JSON.stringify(choice)} is on line ${earlier} as well`);
    else {
      lines.set(choice, line);
      if (removes) described.set(choice, '');
      else if (typeof description === 'string' && !description.isWellFormed())
        fail('description is not well-formed text: it holds a lone surrogate');
      else if (missing.length === 0) described.set(choice, description as string);
    }
  }
  return { described, lines, problems };
}

/** What is wrong with the texts that the model would read for the choices. `lines`: of the choices that have one. */
async function textProblems(
  engine: OwnEngine,
  { choices, additions }: CatalogRecord,
  lines: ReadonlyMap<string, number> = new Map(),
): Promise<readonly LineProblem[]> {
  const texts = choices.map((choice) => textOfChoice(choice, additions?.descriptions));
  const tooLong = await engine.tooLong([...new Set(texts)]);
  const limit = engine.revision.limits.candidateTokens;
  return choices.flatMap((choice, place): readonly LineProblem[] => {
    const text = texts[place] as string;
    const line = lines.get(choice) ?? 0;
    const name = JSON.stringify(choice);
    const first = texts.indexOf(text);
    const tokens = tooLong.get(text);
    const own = text === choice ? '' : ' with its description';
    const long = `${name} has ${tokens} tokens${own}, ${engine.name} takes at most ${limit}`;
    return [
      ...(first === place ? [] : [{ line, problem: `${name} reads as ${JSON.stringify(choices[first])} does` }]),
      ...(tokens === undefined ? [] : [{ line, problem: long }]),
    ];
  });
}
