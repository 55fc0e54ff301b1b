/** `umpire keys export` and `umpire keys import`: from one store to another, as hashes, so that clients go on with the keys that they have. */
import { readFile } from 'node:fs/promises';
import { isOwnerName } from '../domain/keys.ts';
import { fromKeyFields, toKeyFields } from '../stores/key-record.ts';
import type { KeyRecord } from '../stores/key-store.ts';
import { ownerFrom, readArguments } from './arguments.ts';
import type { Command } from './command.ts';
import { patience, withStores } from './with-stores.ts';

/** The commands. */
export const keyMovingCommands: readonly Command[] = [
  {
    name: 'keys export',
    usage: '[--owner NAME]',
    summary:
      'writes what is kept of the keys, without their secrets, one JSON object a line: for moving to another store',
    async run(args, terminal) {
      const { values } = readArguments(args, { owner: { type: 'string' } });
      const owner = values.owner === undefined ? undefined : ownerFrom(values.owner);
      const records = await withStores(terminal, ({ keys }) => keys.list(patience()));
      for (const record of records) if (owner === undefined || record.owner === owner) terminal.out(lineOf(record));
    },
  },
  {
    name: 'keys import',
    usage: '[FILE]',
    summary: 'adds exported keys that the store does not have; clients go on with the keys that they have',
    async run(args, terminal) {
      const { positionals } = readArguments(args, {}, [0, 1]);
      const [file] = positionals;
      const lines = (file === undefined ? await terminal.input() : await readFile(file, 'utf8')).split('\n');
      // All lines are judged before the first is written.
      const records = lines.flatMap((line, index) => (line.trim() === '' ? [] : [recordOf(line, index + 1)]));
      await withStores(terminal, async ({ keys }) => {
        let added = 0;
        for (const record of records) if (await keys.add(record, patience())) added++;
        terminal.out(`${added} added, ${records.length - added} existed`);
      });
    },
  },
];

function lineOf(record: KeyRecord): string {
  const { hash, endsAt } = record;
  return JSON.stringify({ hash, ...toKeyFields(record), ...(endsAt === undefined ? {} : { ends_at: endsAt }) });
}

function recordOf(line: string, place: number): KeyRecord {
  try {
    const { hash, ...fields } = JSON.parse(line) as Record<string, unknown>;
    const record = fromKeyFields(String(hash), fields);
    if (/^[0-9a-f]{64}$/.test(record.hash) && isOwnerName(record.owner)) return record;
  } catch {
    // The same as a record that is readable and wrong.
  }
  throw new Error(`line ${place} is not an exported key; nothing was imported`);
}
