/**
 * `umpire backup` and `umpire restore`: everything that a store holds, in one file of the same format for both kinds of
 * store. Each line is a JSON object: first a head `{"kind":"umpire-backup","format":1,…}`, then `{"kind":"key",…}` and
 * `{"kind":"catalog","owner":…,…}`, and last `{"kind":"end","keys":…,"catalogs":…}`. Without its last line the file is
 * incomplete. `umpire keys export` and `umpire keys import` move keys alone.
 */
import { createReadStream } from 'node:fs';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { isOwnerName } from '../domain/keys.ts';
import { type CatalogRecord, UNBOUNDED } from '../stores/catalog-store.ts';
import type { KeyRecord } from '../stores/key-store.ts';
import { StoreCorrupt, type Stores } from '../stores/stores.ts';
import { VERSION } from '../version.ts';
import { ownerFrom, readArguments } from './arguments.ts';
import { catalogFromLine, examplesOfLine, lineOf } from './catalogs/catalog-show.ts';
import type { Command, Terminal } from './command.ts';
import { keyFromLine, keyLine, unreadableOf } from './keys/keys.ts';
import { patience, STORE_ENVIRONMENT, withStores } from './with-stores.ts';

/** The version of the file's format, in its head; `restore` refuses every other. */
const FORMAT = 1;
/** Writes in progress at a time: the embedded store commits those that arrive together in one transaction. */
const AT_ONCE = 64;

/** A key or a catalog of a backup. */
type Entry =
  | { readonly kind: 'key'; readonly record: KeyRecord }
  | { readonly kind: 'catalog'; readonly owner: string; readonly record: CatalogRecord; readonly examples: string };

/** The commands `umpire backup` and `umpire restore`. */
export const BACKUP_COMMANDS: readonly Command[] = [
  {
    name: 'backup',
    usage: 'FILE',
    summary: 'writes all keys and catalogs of the store to a file',
    notes: [
      'Keys are written as hashes, never as secrets. The server may run meanwhile. Only the user who runs the command can read the file. It is written completely or not at all, and replaces a file of that name.',
    ],
    positionals: [['FILE', 'the file to write']],
    options: {},
    environment: STORE_ENVIRONMENT,
    failure: 'a key or a catalog could not be read and is not in the file',
    async run(args, terminal) {
      const { positionals } = readArguments(args, {}, ['FILE']);
      const file = positionals[0] as string;
      await withStores(terminal, async (stores) => {
        const partial = `${file}.${process.pid}.part`;
        try {
          const { keys, catalogs, skipped } = await write(stores, partial, terminal);
          await rename(partial, file);
          terminal.out(`${keys} keys and ${catalogs} catalogs are in ${file}`);
          if (skipped > 0) throw new Error(`what could not be read is not in it: ${skipped} records`);
        } finally {
          await rm(partial, { force: true });
        }
      });
    },
  },
  {
    name: 'restore',
    usage: 'FILE',
    summary: 'adds what a backup holds and the store does not; never overwrites',
    notes: [
      'The store may be of the other kind. To have exactly what the backup holds, restore into an empty store. Keys that were revoked and catalogs that were deleted since come back.',
    ],
    positionals: [['FILE', "what 'umpire backup' wrote"]],
    options: {},
    environment: STORE_ENVIRONMENT,
    async run(args, terminal) {
      const { positionals } = readArguments(args, {}, ['FILE']);
      const file = positionals[0] as string;
      // The whole file is checked before its first entry is written: a broken backup changes nothing.
      for await (const _ of read(file));
      await withStores(
        terminal,
        async (stores) => {
          const added = { key: 0, catalog: 0 };
          const existed = { key: 0, catalog: 0 };
          let batch: Entry[] = [];
          const flush = async (): Promise<void> => {
            const outcomes = await Promise.all(batch.map((entry) => add(stores, entry)));
            for (const [place, { kind }] of batch.entries()) (outcomes[place] ? added : existed)[kind]++;
            batch = [];
          };
          for await (const entry of read(file)) if (batch.push(entry) === AT_ONCE) await flush();
          await flush();
          terminal.out(`${added.key} keys and ${added.catalog} catalogs added`);
          terminal.out(`${existed.key} keys and ${existed.catalog} catalogs existed and stay as they are`);
        },
        { creates: true },
      );
    },
  },
];

async function write({ keys: keyStore, catalogs: catalogStore }: Stores, file: string, terminal: Terminal) {
  const counts = { keys: 0, catalogs: 0, skipped: 0 };
  const handle = await open(file, 'wx', 0o600);
  try {
    const line = async (value: object): Promise<void> => {
      await handle.write(`${JSON.stringify(value)}\n`);
    };
    await line({ kind: 'umpire-backup', format: FORMAT, version: VERSION, created_at: new Date().toISOString() });
    const skip = (problem: string): void => {
      counts.skipped++;
      terminal.err(problem);
    };
    const { records, unreadable } = await keyStore.list(patience());
    for (const { name } of unreadable) skip(`${name}: not readable, left out`);
    for (const record of records) {
      const fields = keyLine(record);
      if (fields === undefined) {
        skip(`${record.keyId}: not readable, left out`);
        continue;
      }
      await line({ kind: 'key', ...fields });
      counts.keys++;
    }
    for (const owner of await catalogStore.owners(patience())) {
      const ids = isOwnerName(owner) ? await catalogStore.list(owner, patience()).catch(corrupt) : undefined;
      if (ids === undefined) skip(`the catalogs of ${owner}: not readable, left out`);
      for (const id of ids ?? []) {
        const { line: fields, problem } = await lineOf(catalogStore, owner, id);
        if (problem !== undefined) skip(`${id} of ${owner}: ${problem}`);
        if (fields === undefined) continue;
        await line({ kind: 'catalog', owner, ...fields });
        counts.catalogs++;
      }
    }
    await line({ kind: 'end', keys: counts.keys, catalogs: counts.catalogs });
    await handle.sync();
    return counts;
  } finally {
    await handle.close();
  }
}

/** The entries of a backup, in the order of the file. @throws Error that names the line with the problem. */
async function* read(file: string): AsyncGenerator<Entry> {
  const counts = { key: 0, catalog: 0 };
  let place = 0;
  let ended = false;
  for await (const text of createInterface({
    input: createReadStream(file, 'utf8'),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    place++;
    const fail = (problem: string): never => {
      throw new Error(`${file}, line ${place}: ${problem}; nothing was restored`);
    };
    if (ended) fail('there is a line after the end');
    const fields = parse(text) ?? fail('is not a JSON object');
    const { kind, ...rest } = fields;
    if (place === 1) {
      if (kind !== 'umpire-backup') fail('the file is not a backup');
      if (fields.format !== FORMAT) fail('the backup was written by another version of Umpire');
    } else if (kind === 'key') {
      counts.key++;
      yield { kind, record: keyFromLine(rest) ?? fail('is not a key') };
    } else if (kind === 'catalog') {
      const { owner, ...catalog } = rest;
      if (typeof owner !== 'string' || !isOwnerName(owner)) return fail("owner must be an owner's name");
      const parsed = catalogFromLine(catalog);
      const record = 'problem' in parsed ? fail(parsed.problem) : parsed.value;
      counts.catalog++;
      yield { kind, owner, record, examples: examplesOfLine(catalog) };
    } else if (kind === 'end') {
      if (fields.keys !== counts.key || fields.catalogs !== counts.catalog) fail('lines are missing before the end');
      ended = true;
    } else {
      fail('is neither a key nor a catalog');
    }
  }
  if (!ended) throw new Error(`${file} is not whole: its end is missing; nothing was restored`);
}

function corrupt(error: unknown): undefined {
  if (!(error instanceof StoreCorrupt)) throw error;
}

async function add({ keys, catalogs }: Stores, entry: Entry): Promise<boolean> {
  if (entry.kind === 'key') return keys.add(entry.record, patience());
  const outcome = await catalogs.create(entry.owner, entry.record, UNBOUNDED, patience(), entry.examples);
  return outcome.kind === 'created';
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

// Keys move as hashes, so that clients can still use the keys that they have.

const EXPORT = { owner: { type: 'string', value: 'NAME', meaning: 'of this owner alone' } } as const;

/** The commands `umpire keys export` and `umpire keys import`. */
export const KEY_MOVING_COMMANDS: readonly Command[] = [
  {
    name: 'keys export',
    usage: '[--owner NAME]',
    summary: 'writes what is kept of the keys, without their secrets, for another store',
    notes: ['It writes one JSON object a line to standard output.'],
    options: EXPORT,
    environment: STORE_ENVIRONMENT,
    failure: 'a key could not be read',
    async run(args, terminal) {
      const { values } = readArguments(args, EXPORT);
      const owner = values.owner === undefined ? undefined : ownerFrom(values.owner);
      const all = await withStores(terminal, ({ keys }) => keys.list(patience()));
      let skipped = 0;
      const skip = (name: string): void => {
        skipped++;
        terminal.err(`${name}: not readable, left out`);
      };
      for (const { name } of unreadableOf(owner, all.unreadable)) skip(name);
      for (const record of all.records) {
        if (owner !== undefined && record.owner !== owner) continue;
        const line = keyLine(record);
        if (line === undefined) skip(record.keyId);
        else terminal.out(JSON.stringify(line));
      }
      if (skipped > 0) throw new Error(`${skipped} keys could not be exported`);
    },
  },
  {
    name: 'keys import',
    usage: '[FILE]',
    summary: 'adds exported keys that the store does not have',
    notes: ['Clients can still use the keys that they have.'],
    positionals: [['FILE', 'what keys export wrote (default: standard input)']],
    options: {},
    environment: STORE_ENVIRONMENT,
    async run(args, terminal) {
      const { positionals } = readArguments(args, {}, [], 1);
      const [file] = positionals;
      const lines = (file === undefined ? await terminal.input() : await readFile(file, 'utf8')).split('\n');
      // All lines are checked before the first is written: a broken file changes nothing.
      const records = lines.flatMap((line, index) => (line.trim() === '' ? [] : [recordOf(line, index + 1)]));
      await withStores(
        terminal,
        async ({ keys }) => {
          let added = 0;
          for (const record of records) if (await keys.add(record, patience())) added++;
          terminal.out(`${added} added, ${records.length - added} existed`);
        },
        { creates: true },
      );
    },
  },
];

function recordOf(line: string, place: number): KeyRecord {
  try {
    const record = keyFromLine(JSON.parse(line) ?? {});
    if (record !== undefined) return record;
  } catch {
    // What is not JSON gets the same error as JSON that is not a key.
  }
  throw new Error(`line ${place} is not an exported key; nothing was imported`);
}
