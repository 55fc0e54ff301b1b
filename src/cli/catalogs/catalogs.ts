/**
 * `umpire catalogs …`: lists, exports, imports and deletes an owner's catalogs. Exports and imports are one JSON object
 * a line.
 */
import { writeFile } from 'node:fs/promises';
import { isCatalogId } from '../../domain/catalogs.ts';
import { listPackages } from '../../engine/package-tools/check.ts';
import { StoreCorrupt } from '../../stores/stores.ts';
import { counted, type Listed, ownerFrom, printList, readArguments } from '../arguments.ts';
import { type Command, JSON_OPTION, OWNER_OPTION, option, type Terminal, UsageError } from '../command.ts';
import { USUAL_MODEL } from '../decide/ask.ts';
import { nameLookalikes } from '../decide/decide.ts';
import { EXAMPLE_OPTIONS, readingFrom } from '../decide/records.ts';
import { modelsFolder } from '../learn/own-engine.ts';
import { addAll, catalogFrom, type Entry, exportLines, importedFrom } from '../store-lines.ts';
import { ifCorrupt, patience, STORE_ENVIRONMENT, withStores } from '../with-stores.ts';
import { PROJECT_FORMS, readProject } from './other-projects.ts';

const OWNED = { owner: OWNER_OPTION } as const;
const LIST = { ...OWNED, json: JSON_OPTION } as const;

/** Only CSV has columns, and its utterances no instruction of their own. */
const { instruction: _, ...COLUMNS } = EXAMPLE_OPTIONS;
const IMPORT = {
  ...OWNED,
  from: option('FORM', `what the project is: ${PROJECT_FORMS.join(', ')}`),
  catalog: option('ID', 'the id of the catalog that --from creates'),
  model: option('MODEL', 'its model', USUAL_MODEL),
  out: option('FILE', 'a new file for the examples of --from, as JSON lines'),
  ...COLUMNS,
} as const;

/** The commands `umpire catalogs list`, `export`, `import` and `delete`. */
export const CATALOG_COMMANDS: readonly Command[] = [
  {
    name: 'catalogs list',
    usage: '--owner NAME [--json]',
    summary: "shows an owner's catalogs",
    options: LIST,
    environment: STORE_ENVIRONMENT,
    failure: 'a catalog could not be read',
    async run(args, terminal) {
      const { values } = readArguments(args, LIST);
      const owner = ownerFrom(values.owner);
      await withStores(terminal, async ({ catalogs }) => {
        const list: Listed[] = [];
        let broken = 0;
        for (const id of await catalogs.list(owner, patience())) {
          const found = await catalogs.read(owner, id, patience()).catch(ifCorrupt);
          if (found === undefined) continue;
          if (found instanceof StoreCorrupt) {
            list.push({ row: [id, '', '', '', 'not readable'], plain: { id, readable: false } });
            broken++;
          } else {
            const { model, version, createdAt, choices } = found.record;
            const count = choices.length;
            const plain = { id, readable: true, model, version, choices: count, created_at: createdAt };
            list.push({ row: [id, model, version, String(count), createdAt], plain });
          }
        }
        printList(terminal, values.json, ['ID', 'MODEL', 'VERSION', 'CHOICES', 'CREATED'], list);
        if (broken > 0) throw new Error(`${broken} of the owner's catalogs could not be read`);
      });
    },
  },
  {
    name: 'catalogs export',
    usage: '--owner NAME',
    summary: "writes an owner's catalogs to standard output, one JSON object a line",
    options: OWNED,
    environment: STORE_ENVIRONMENT,
    failure: 'a catalog could not be read',
    async run(args, terminal) {
      await exportLines(terminal, 'catalog', ownerFrom(readArguments(args, OWNED).values.owner));
    },
  },
  {
    name: 'catalogs import',
    usage: '--owner NAME ([FILE] | --from FORM --catalog ID --out FILE [OPTION]… FILE…)',
    summary: 'creates exported catalogs that the owner does not have; never overwrites',
    notes: [
      'A catalog whose model is not in the folder of models is imported all the same, and the command names it: another server may have the model. Decisions with the catalog fail where its model is not served.',
      'With --from, the intents of a project that was made for another service become the choices of one catalog, and its utterances the examples in the file of --out, which learn and evaluate read. A test set goes into a file of its own. The command says what it leaves out.',
    ],
    positionals: [
      ['FILE', 'what catalogs export wrote (default: standard input); with --from the files or folders of the project'],
    ],
    options: IMPORT,
    environment: [...STORE_ENVIRONMENT, 'UMPIRE_MODELS_DIR'],
    async run(args, terminal) {
      const { values, positionals } = readArguments(args, IMPORT, [], 999);
      const owner = ownerFrom(values.owner);
      const [file, unexpected] = positionals;
      if (values.from === undefined && unexpected !== undefined)
        throw new UsageError(`unexpected argument '${unexpected}'`);
      const entries =
        values.from === undefined
          ? await importedFrom(terminal, file, 'catalog', owner)
          : [await fromProject(values, owner, positionals, terminal)];
      let created = 0;
      await addAll(terminal, entries, (entry, isNew) => {
        if (isNew) created++;
        else if (entry.kind === 'catalog') terminal.err(`${entry.record.id}: exists, left as it is`);
      });
      terminal.out(`${created} created, ${entries.length - created} existed`);
      await nameForeignModels(entries, terminal);
    },
  },
  {
    name: 'catalogs delete',
    usage: '--owner NAME ID…',
    summary: 'deletes catalogs, including unreadable ones',
    positionals: [['ID…', 'the ids of the catalogs']],
    options: OWNED,
    environment: STORE_ENVIRONMENT,
    failure: 'a catalog did not exist',
    async run(args, terminal) {
      const { values, positionals } = readArguments(args, OWNED, ['ID'], 999);
      const owner = ownerFrom(values.owner);
      const wrong = positionals.find((id) => !isCatalogId(id));
      if (wrong !== undefined) throw new UsageError(`'${wrong}' cannot be the id of a catalog`);
      await withStores(terminal, async ({ catalogs }) => {
        let missing = 0;
        for (const id of positionals) {
          const existed = await catalogs.delete(owner, id, patience());
          if (!existed) missing++;
          terminal.out(`${id}: ${existed ? 'deleted' : 'does not exist'}`);
        }
        if (missing > 0) throw new Error(`${missing} of ${positionals.length} did not exist`);
      });
    },
  },
];

/** The catalog of another service's project, whose examples it writes. @throws UsageError, Error. */
async function fromProject(
  values: ReturnType<typeof readArguments<typeof IMPORT>>['values'],
  owner: string,
  paths: readonly string[],
  terminal: Terminal,
): Promise<Entry> {
  const { from = '', catalog, model = USUAL_MODEL, out } = values;
  if (!PROJECT_FORMS.includes(from)) throw new UsageError(`--from: '${from}' is none of ${PROJECT_FORMS.join(', ')}`);
  if (catalog === undefined || out === undefined || paths.length === 0)
    throw new UsageError('--from needs --catalog ID, --out FILE and the files of the project');
  const { choices, examples, tests, notes } = await readProject(from, paths, readingFrom(values));
  const entry = catalogFrom({ owner, id: catalog, model, choices });
  if ('problem' in entry) throw new Error(`${entry.problem}; nothing was imported`);
  for (const note of notes) terminal.err(note);
  nameLookalikes(choices, terminal);
  for (const [file, list] of [[out, examples] as const, [out.replace(/(\.\w+)?$/, '.test$1'), tests] as const]) {
    if (list.length === 0) continue;
    await writeFile(file, list.map((each) => `${JSON.stringify(each)}\n`).join(''), { flag: 'wx' });
    terminal.out(
      `${file}: ${counted(list.length, 'example')}${list === tests ? ' of the test set, to evaluate with' : ''}`,
    );
  }
  terminal.out(`${catalog}: ${choices.length} choices; 'umpire catalogs describe' says what their names mean`);
  return entry.value;
}

async function nameForeignModels(entries: readonly Entry[], terminal: Terminal): Promise<void> {
  const folder = modelsFolder(terminal);
  const packages = await listPackages(folder).catch(() => undefined);
  if (packages === undefined) return;
  const records = entries.flatMap((entry) => (entry.kind === 'catalog' ? [entry.record] : []));
  const missing = records.filter(({ model }) => !packages.some(({ id }) => id === model));
  for (const [model, own] of Map.groupBy(missing, (record) => record.model))
    terminal.err(`${own.map(({ id }) => id).join(', ')}: model '${model}' is not in ${folder}`);
}
