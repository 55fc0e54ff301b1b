/** `umpire catalogs …`: an owner's catalogs in the operator's hands, one JSON object a line where they leave and enter. */
import { readFile } from 'node:fs/promises';
import { DEFAULT_VERSION, draftFault, isCatalogId, PRIVATE } from '../domain/catalog-rules.ts';
import { areCalibrations } from '../stores/catalog-record.ts';
import { type CatalogRecord, UNBOUNDED } from '../stores/catalog-store.ts';
import { StoreCorrupt } from '../stores/errors.ts';
import { ownerFrom, readArguments } from './arguments.ts';
import { type Command, UsageError } from './command.ts';
import { printTable } from './table.ts';
import { patience, withStores } from './with-stores.ts';

const owned = { owner: { type: 'string' } } as const;

/** The commands. */
export const catalogCommands: readonly Command[] = [
  {
    name: 'catalogs list',
    usage: '--owner NAME',
    summary: "shows an owner's catalogs",
    async run(args, terminal) {
      const owner = ownerFrom(readArguments(args, owned).values.owner);
      await withStores(terminal, async ({ catalogs }) => {
        const rows: string[][] = [];
        for (const id of await catalogs.list(owner, patience())) {
          const found = await catalogs.read(owner, id, patience()).catch(unreadable);
          if (found === undefined) continue;
          if (found instanceof StoreCorrupt) rows.push([id, '', '', '', 'not readable']);
          else {
            const { model, version, choices, createdAt } = found.record;
            rows.push([id, model, version, String(choices.length), createdAt]);
          }
        }
        printTable(terminal, ['ID', 'MODEL', 'VERSION', 'CHOICES', 'CREATED'], rows);
      });
    },
  },
  {
    name: 'catalogs export',
    usage: '--owner NAME',
    summary: 'writes them to standard output, one JSON object a line',
    async run(args, terminal) {
      const owner = ownerFrom(readArguments(args, owned).values.owner);
      await withStores(terminal, async ({ catalogs }) => {
        let skipped = 0;
        for (const id of await catalogs.list(owner, patience())) {
          const found = await catalogs.read(owner, id, patience()).catch(unreadable);
          if (found instanceof StoreCorrupt) {
            skipped++;
            terminal.err(`${id}: not readable, left out`);
          } else if (found !== undefined) {
            const { createdAt, ...fields } = found.record;
            terminal.out(JSON.stringify({ ...fields, created_at: createdAt }));
          }
        }
        if (skipped > 0) throw new Error(`${skipped} of the owner's catalogs could not be exported`);
      });
    },
  },
  {
    name: 'catalogs import',
    usage: '--owner NAME [FILE]',
    summary: 'creates those that the owner does not have, from a file or standard input; never overwrites',
    async run(args, terminal) {
      const { values, positionals } = readArguments(args, owned, [0, 1]);
      const owner = ownerFrom(values.owner);
      const [file] = positionals;
      const text = file === undefined ? await terminal.input() : await readFile(file, 'utf8');
      // All lines are judged before the first is written.
      const records = text
        .split('\n')
        .map((line, index) => ({ line: line.trim(), place: index + 1 }))
        .filter(({ line }) => line !== '')
        .map(({ line, place }) => recordFrom(line, place));
      await withStores(terminal, async ({ catalogs }) => {
        let created = 0;
        for (const record of records) {
          const outcome = await catalogs.create(owner, record, UNBOUNDED, patience());
          if (outcome.kind === 'created') created++;
          else terminal.err(`${record.id}: exists, left as it is`);
        }
        terminal.out(`${created} created, ${records.length - created} existed`);
      });
    },
  },
  {
    name: 'catalogs delete',
    usage: '--owner NAME ID…',
    summary: 'deletes catalogs, unreadable ones, too',
    async run(args, terminal) {
      const { values, positionals } = readArguments(args, owned, [1, 1_000]);
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

/** The record of one exported line. Whether its model is served and takes its choices shows when it decides. */
function recordFrom(line: string, place: number): CatalogRecord {
  const fail = (problem: string): never => {
    throw new Error(`line ${place}: ${problem}; nothing was imported`);
  };
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    fail('is not JSON');
  }
  const fields = (value ?? {}) as Record<string, unknown>;
  const { id, model, choices, version, visibility, created_at: createdAt, calibrations = {} } = fields;
  if (typeof id !== 'string' || typeof model !== 'string' || model === '') return fail('id and model must be texts');
  if (!Array.isArray(choices) || !choices.every((choice) => typeof choice === 'string'))
    return fail('choices must be a list of texts');
  if (!areCalibrations(calibrations)) return fail('calibrations must be positive numbers');
  const optional = (name: string, field: unknown): string | undefined =>
    field === undefined || typeof field === 'string' ? field : fail(`${name} must be a text`);
  const draft = {
    id,
    model,
    choices,
    version: optional('version', version),
    visibility: optional('visibility', visibility),
  };
  const fault = draftFault(draft);
  if (fault !== undefined) return fail(fault.message);
  return {
    id,
    model,
    choices,
    version: draft.version ?? DEFAULT_VERSION,
    visibility: draft.visibility ?? PRIVATE,
    createdAt: optional('created_at', createdAt) ?? new Date().toISOString(),
    ...(Object.keys(calibrations).length === 0 ? {} : { calibrations }),
  };
}
