/**
 * A store as lines of JSON, the same for both kinds of store: `{"kind":"key",…}` and `{"kind":"catalog","owner":…,…}`.
 * A key's line has its hash, never its secret, so that clients can still use it. A backup is a file of all of them,
 * between a head `{"kind":"umpire-backup","format":1,…}` and an end `{"kind":"end","keys":…,"catalogs":…}`, without
 * which it is incomplete. The exports of keys and of catalogs are such lines alone; those that earlier versions wrote
 * have neither `kind` nor a catalog's `owner`.
 */
import { DEFAULT_VERSION, draftFault, PRIVATE } from '../domain/catalogs.ts';
import { isOwnerName } from '../domain/keys.ts';
import type { Parsed } from '../domain/settings.ts';
import { additionsProblem, type CatalogAdditions } from '../stores/catalog-additions.ts';
import { areCalibrations, withAdditions } from '../stores/catalog-record.ts';
import { type CatalogRecord, type CatalogStore, UNBOUNDED } from '../stores/catalog-store.ts';
import { fromKeyFields, toKeyFields } from '../stores/key-record.ts';
import type { KeyList, KeyRecord, KeyStore } from '../stores/key-store.ts';
import { StoreCorrupt, type Stores } from '../stores/stores.ts';
import { counted } from './arguments.ts';
import type { Terminal } from './command.ts';
import { readTextFile } from './decide/lines.ts';
import { problemLines, readExamples } from './learn/examples.ts';
import { ifCorrupt, patience, withStores } from './with-stores.ts';

/** The version of a backup's format, in its head; `restore` refuses every other. */
export const FORMAT = 1;
/** Writes in progress at a time: the embedded store commits those that arrive together in one transaction. */
const AT_ONCE = 64;

type Kind = 'key' | 'catalog';
/** A key or a catalog, with the examples that are kept beside it, as JSON lines. */
export type Entry =
  | { readonly kind: 'key'; readonly owner: string; readonly record: KeyRecord }
  | { readonly kind: 'catalog'; readonly owner: string; readonly record: CatalogRecord; readonly examples: string };
type Fields = Readonly<Record<string, unknown>>;

/** Prints the lines of all keys or catalogs, or of one owner's. @throws Error if something had to be left out. */
export function exportLines(terminal: Terminal, kind: Kind, owner: string | undefined): Promise<void> {
  return withStores(terminal, async (stores) => {
    const print = async (line: object): Promise<void> => terminal.out(JSON.stringify(line));
    refuseSkipped((await writeLines(stores, kind, owner, terminal, print)).skipped);
  });
}

/**
 * The entries of a file of lines, or of standard input. `owner`: whose the catalogs become. Throws Error for the first
 * line that is not of this kind.
 */
export async function importedFrom(
  terminal: Terminal,
  file: string | undefined,
  kind: Kind,
  owner?: string,
): Promise<readonly Entry[]> {
  const text = file === undefined ? await terminal.input() : await readTextFile(file);
  return Array.fromAsync(entriesIn(text.split('\n'), undefined, kind, owner));
}

/** Adds entries, and says of each whether it is new. All are read once before the first is written. */
export async function addAll(
  terminal: Terminal,
  entries: AsyncIterable<Entry> | Iterable<Entry>,
  said: (entry: Entry, isNew: boolean) => void,
): Promise<void> {
  for await (const _ of entries);
  await withStores(
    terminal,
    async ({ keys, catalogs }) => {
      const add = async (entry: Entry): Promise<boolean> => {
        if (entry.kind === 'key') return keys.add(entry.record, patience());
        const { owner, record, examples } = entry;
        return (await catalogs.create(owner, record, UNBOUNDED, patience(), examples)).kind === 'created';
      };
      let batch: Entry[] = [];
      const flush = async (): Promise<void> => {
        const added = await Promise.all(batch.map(add));
        for (const [place, entry] of batch.entries()) said(entry, added[place] as boolean);
        batch = [];
      };
      for await (const entry of entries) if (batch.push(entry) === AT_ONCE) await flush();
      await flush();
    },
    { creates: true },
  );
}

/** The keys that may be this owner's, with those that cannot be read; all keys if undefined. */
export async function keysOf(keys: KeyStore, owner: string | undefined): Promise<KeyList> {
  const { records, unreadable } = await keys.list(patience());
  return {
    records: records.filter((key) => owner === undefined || key.owner === owner),
    unreadable: unreadable.filter((key) => owner === undefined || (key.owner ?? owner) === owner),
  };
}

/** Writes the lines of an owner's keys and catalogs, or of all. Names what it leaves out on standard error. */
export async function writeLines(
  { keys, catalogs }: Stores,
  only: Kind | undefined,
  owner: string | undefined,
  terminal: Terminal,
  write: (line: object) => Promise<unknown>,
) {
  const counts = { key: 0, catalog: 0, skipped: 0 };
  const put = async (kind: Kind, fields: object): Promise<void> => {
    await write({ kind, ...fields });
    counts[kind]++;
  };
  const skip = (name: string, what = 'not readable'): void => {
    terminal.err(`${name}: ${what}, left out`);
    counts.skipped++;
  };
  if (only !== 'catalog') {
    const { records, unreadable } = await keysOf(keys, owner);
    for (const { name } of unreadable) skip(name);
    for (const record of records) {
      const fields = keyFields(record);
      // Whatever has a line can be read back: one that could not would keep all others of its file from it.
      if ('problem' in keyFrom(fields)) skip(record.keyId);
      else await put('key', fields);
    }
  }
  if (only === 'key') return counts;
  for (const whose of owner === undefined ? await catalogs.owners(patience()) : [owner]) {
    const ids = isOwnerName(whose) ? await catalogs.list(whose, patience()).catch(ifCorrupt) : undefined;
    if (!Array.isArray(ids)) skip(`the catalogs of ${whose}`);
    else
      for (const id of ids) {
        const found = await catalogFields(catalogs, whose, id).catch(ifCorrupt);
        if (found instanceof StoreCorrupt) skip(`${id} of ${whose}`);
        else if (found !== undefined) {
          const { examples, ...fields } = found;
          const [isSound, isWhole] = [fields, found].map((each) => 'value' in catalogFrom(each));
          if (isWhole || isSound) await put('catalog', isWhole ? found : fields);
          if (!isWhole) skip(`${id} of ${whose}`, isSound ? 'kept examples not readable' : undefined);
        }
      }
  }
  return counts;
}

/** @throws Error if something had to be left out, once all the rest is written. */
export function refuseSkipped(count: number): void {
  if (count > 0) throw new Error(`what could not be read is not in it: ${counted(count, 'record')}`);
}

function keyFields(record: KeyRecord): Fields {
  const { hash, endsAt, lastUsedAt } = record;
  return {
    hash,
    ...Object.fromEntries(Object.entries(toKeyFields(record)).filter(([, text]) => text !== '')),
    ...(endsAt === undefined ? {} : { ends_at: endsAt }),
    ...(lastUsedAt === undefined ? {} : { last_used_at: lastUsedAt }),
  };
}

async function catalogFields(catalogs: CatalogStore, owner: string, id: string): Promise<Fields | undefined> {
  const found = await catalogs.read(owner, id, patience());
  if (found === undefined) return undefined;
  const { createdAt, ...record } = found.record;
  const examples = await catalogs.examples(owner, id, patience());
  return { owner, ...record, created_at: createdAt, ...(examples === '' ? {} : { examples }) };
}

/**
 * The entries of lines, in their order. `file`: the backup that they are, with its head and its end; otherwise all are
 * of one kind. Throws Error that names the line with the problem.
 */
export async function* entriesIn(
  lines: AsyncIterable<string> | Iterable<string>,
  file: string | undefined,
  only?: Kind,
  owner?: string,
): AsyncGenerator<Entry> {
  const counts = { key: 0, catalog: 0 };
  let place = 0;
  let state: 'before' | 'within' | 'after' = file === undefined ? 'within' : 'before';
  for await (const text of lines) {
    place++;
    if (text.trim() === '') continue;
    const fail = (problem: string): never => {
      const where = file === undefined ? '' : `${file}, `;
      throw new Error(`${where}line ${place}: ${problem}; nothing was ${file === undefined ? 'imported' : 'restored'}`);
    };
    const { kind = only, ...fields } = objectIn(text) ?? fail('is not a JSON object');
    if (state === 'after') fail('there is a line after the end');
    if (state === 'before') {
      if (kind !== 'umpire-backup') fail('the file is not a backup');
      if (fields.format !== FORMAT) fail('the backup was written by another version of Umpire');
      state = 'within';
    } else if (kind === 'end' && file !== undefined) {
      if (fields.keys !== counts.key || fields.catalogs !== counts.catalog) fail('lines are missing before the end');
      state = 'after';
    } else if ((kind === 'key' || kind === 'catalog') && kind === (only ?? kind)) {
      const entry = kind === 'key' ? keyFrom(fields) : catalogFrom(owner === undefined ? fields : { ...fields, owner });
      counts[kind]++;
      yield 'problem' in entry ? fail(entry.problem) : entry.value;
    } else {
      fail(only === undefined ? 'is neither a key nor a catalog' : `is not a ${only}`);
    }
  }
  if (file !== undefined && state !== 'after')
    throw new Error(`${file} is not whole: its end is missing; nothing was restored`);
}

function objectIn(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

/** The key of a line's fields. */
function keyFrom(fields: Fields): Parsed<Entry> {
  try {
    const record = fromKeyFields(String(fields.hash), fields);
    if (/^[0-9a-f]{64}$/.test(record.hash) && isOwnerName(record.owner))
      return { value: { kind: 'key', owner: record.owner, record } };
  } catch (error) {
    ifCorrupt(error);
  }
  return { problem: 'is not a key' };
}

/** The catalog of a line's fields. Whether its model is served and takes its choices is not checked here. */
export function catalogFrom(fields: Fields): Parsed<Entry & { readonly kind: 'catalog' }> {
  const { owner, id, model, choices, calibrations = {}, additions = {}, examples = '' } = fields;
  const { version = DEFAULT_VERSION, visibility = PRIVATE, created_at: createdAt = new Date().toISOString() } = fields;
  if (typeof owner !== 'string' || !isOwnerName(owner)) return { problem: "owner must be an owner's name" };
  if (typeof id !== 'string' || typeof model !== 'string' || model === '')
    return { problem: 'id and model must be texts' };
  if (!Array.isArray(choices) || !choices.every((choice) => typeof choice === 'string'))
    return { problem: 'choices must be a list of texts' };
  if (!areCalibrations(calibrations)) return { problem: 'calibrations must be positive numbers' };
  for (const [name, value] of Object.entries({ version, visibility, created_at: createdAt }))
    if (typeof value !== 'string') return { problem: `${name} must be a text` };
  const texts = { version, visibility, createdAt } as Pick<CatalogRecord, 'version' | 'visibility' | 'createdAt'>;
  const fault = draftFault({ id, model, choices, ...texts })?.message;
  const problem = fault ?? additionsProblem(additions, choices, model) ?? examplesProblem(examples, choices);
  if (problem !== undefined) return { problem };
  const fitted = Object.keys(calibrations).length === 0 ? {} : { calibrations };
  const record = withAdditions({ id, model, choices, ...texts, ...fitted }, additions as CatalogAdditions);
  return { value: { kind: 'catalog', owner, record, examples: examples as string } };
}

function examplesProblem(examples: unknown, choices: readonly string[]): string | undefined {
  if (typeof examples !== 'string' || !/^(\{|$)/.test(examples)) return 'examples must be JSON lines in a text';
  const [problem] = problemLines(readExamples(examples, choices).problems);
  return problem === undefined ? undefined : `examples, ${problem}`;
}
