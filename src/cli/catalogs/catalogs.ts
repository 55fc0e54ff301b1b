/**
 * `umpire catalogs …`: lists, exports, imports and deletes an owner's catalogs. Exports and imports are one JSON object
 * a line.
 */
import { writeFile } from 'node:fs/promises';
import { isCatalogId } from '../../domain/catalogs.ts';
import { listPackages } from '../../engine/package-tools/check.ts';
import { type CatalogRecord, UNBOUNDED } from '../../stores/catalog-store.ts';
import { StoreCorrupt } from '../../stores/stores.ts';
import { ownerFrom, printTable, readArguments } from '../arguments.ts';
import { type Command, JSON_OPTION, OWNER_OPTION, type Terminal, UsageError } from '../command.ts';
import { USUAL_MODEL } from '../decide/ask.ts';
import { nameLookalikes } from '../decide/decide.ts';
import { readTextFile } from '../decide/lines.ts';
import { EXAMPLE_OPTIONS, exampleOptions } from '../learn/examples.ts';
import { modelsFolder } from '../learn/own-engine.ts';
import { patience, STORE_ENVIRONMENT, withStores } from '../with-stores.ts';
import { catalogFromLine, examplesOfLine, lineOf } from './catalog-show.ts';
import { PROJECT_FORMS, readProject } from './other-projects.ts';

const OWNED = { owner: OWNER_OPTION } as const;
const LIST = { ...OWNED, json: JSON_OPTION } as const;

const IMPORT = {
  ...OWNED,
  from: { type: 'string', value: 'FORM', meaning: `what the project is: ${PROJECT_FORMS.join(', ')}` },
  catalog: { type: 'string', value: 'ID', meaning: 'the id of the catalog that --from creates' },
  model: { type: 'string', value: 'MODEL', meaning: 'its model', otherwise: USUAL_MODEL },
  out: { type: 'string', value: 'FILE', meaning: 'a new file for the examples of --from, as JSON lines' },
  ...EXAMPLE_OPTIONS,
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
        const rows: string[][] = [];
        const list: object[] = [];
        let broken = 0;
        for (const id of await catalogs.list(owner, patience())) {
          const found = await catalogs.read(owner, id, patience()).catch(unreadable);
          if (found === undefined) continue;
          if (found instanceof StoreCorrupt) {
            rows.push([id, '', '', '', 'not readable']);
            list.push({ id, readable: false });
            broken++;
          } else {
            const { model, version, choices, createdAt } = found.record;
            rows.push([id, model, version, String(choices.length), createdAt]);
            list.push({ id, readable: true, model, version, choices: choices.length, created_at: createdAt });
          }
        }
        if (values.json === true) terminal.out(JSON.stringify(list));
        else printTable(terminal, ['ID', 'MODEL', 'VERSION', 'CHOICES', 'CREATED'], rows);
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
      const owner = ownerFrom(readArguments(args, OWNED).values.owner);
      await withStores(terminal, async ({ catalogs }) => {
        let skipped = 0;
        for (const id of await catalogs.list(owner, patience())) {
          const { line, problem } = await lineOf(catalogs, owner, id);
          if (problem !== undefined) {
            skipped++;
            terminal.err(`${id}: ${problem}`);
          }
          if (line !== undefined) terminal.out(JSON.stringify(line));
        }
        if (skipped > 0) throw new Error(`${skipped} of the owner's catalogs could not be exported, or not as a whole`);
      });
    },
  },
  {
    name: 'catalogs import',
    usage:
      '--owner NAME ([FILE] | --from FORM --catalog ID --out FILE [--model MODEL] [--separator SIGN] [--input-column NAME] [--instruction-column NAME] [--label-column NAME] FILE…)',
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
      if (values.from !== undefined) {
        const record = await fromProject(values, positionals, terminal);
        await create(owner, [{ record, examples: '' }], terminal);
        return;
      }
      const [file, unexpected] = positionals;
      if (unexpected !== undefined) throw new UsageError(`unexpected argument '${unexpected}'`);
      const text = file === undefined ? await terminal.input() : await readTextFile(file);
      // All lines are checked before the first is written: a broken file changes nothing.
      const entries = text
        .split('\n')
        .map((line, index) => ({ line: line.trim(), place: index + 1 }))
        .filter(({ line }) => line !== '')
        .map(({ line, place }) => recordFrom(line, place));
      await create(owner, entries, terminal);
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

function unreadable(error: unknown): StoreCorrupt {
  if (error instanceof StoreCorrupt) return error;
  throw error;
}

/** A catalog that is to be created, and the examples that are kept beside it. */
interface Imported {
  readonly record: CatalogRecord;
  readonly examples: string;
}

async function create(owner: string, entries: readonly Imported[], terminal: Terminal): Promise<void> {
  await withStores(
    terminal,
    async ({ catalogs }) => {
      let created = 0;
      for (const { record, examples } of entries) {
        const outcome = await catalogs.create(owner, record, UNBOUNDED, patience(), examples);
        if (outcome.kind === 'created') created++;
        else terminal.err(`${record.id}: exists, left as it is`);
      }
      terminal.out(`${created} created, ${entries.length - created} existed`);
    },
    { creates: true },
  );
  await nameForeignModels(
    entries.map(({ record }) => record),
    terminal,
  );
}

/** The catalog of another service's project, whose examples it writes. @throws UsageError, Error. */
async function fromProject(
  values: ReturnType<typeof readArguments<typeof IMPORT>>['values'],
  paths: readonly string[],
  terminal: Terminal,
): Promise<CatalogRecord> {
  const { from = '', catalog, model = USUAL_MODEL, out } = values;
  if (!PROJECT_FORMS.includes(from)) throw new UsageError(`--from: '${from}' is none of ${PROJECT_FORMS.join(', ')}`);
  if (catalog === undefined || out === undefined || paths.length === 0)
    throw new UsageError('--from needs --catalog ID, --out FILE and the files of the project');
  const { choices, examples, tests, notes } = await readProject(from, paths, exampleOptions(values));
  const record = catalogFromLine({ id: catalog, model, choices });
  if ('problem' in record) throw new Error(`${record.problem}; nothing was imported`);
  for (const note of notes) terminal.err(note);
  nameLookalikes(choices, terminal);
  for (const [file, list] of [[out, examples] as const, [out.replace(/(\.\w+)?$/, '.test$1'), tests] as const]) {
    if (list.length === 0) continue;
    await writeFile(file, list.map((each) => `${JSON.stringify(each)}\n`).join(''), { flag: 'wx' });
    terminal.out(`${file}: ${list.length} examples${list === tests ? ' of the test set, to evaluate with' : ''}`);
  }
  terminal.out(`${catalog}: ${choices.length} choices; 'umpire catalogs describe' says what their names mean`);
  return record.value;
}

function recordFrom(line: string, place: number): Imported {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new Error(`line ${place}: is not JSON; nothing was imported`);
  }
  const fields = (value ?? {}) as Record<string, unknown>;
  const record = catalogFromLine(fields);
  if ('problem' in record) throw new Error(`line ${place}: ${record.problem}; nothing was imported`);
  return { record: record.value, examples: examplesOfLine(fields) };
}

async function nameForeignModels(records: readonly CatalogRecord[], terminal: Terminal): Promise<void> {
  const folder = modelsFolder(terminal);
  const packages = await listPackages(folder).catch(() => undefined);
  if (packages === undefined) return;
  const missing = records.filter(({ model }) => !packages.some(({ id }) => id === model));
  for (const model of new Set(missing.map((record) => record.model))) {
    const ids = missing.filter((record) => record.model === model).map(({ id }) => id);
    terminal.err(`${ids.join(', ')}: model '${model}' is not in ${folder}`);
  }
}
