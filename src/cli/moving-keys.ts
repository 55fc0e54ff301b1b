/**
 * `umpire keys export` and `umpire keys import`: move keys from one store to another, as hashes, so that clients can
 * still use the keys that they have.
 */
import { readFile } from 'node:fs/promises';
import type { KeyRecord } from '../stores/key-store.ts';
import { ownerFrom, readArguments } from './arguments.ts';
import type { Command } from './command.ts';
import { keyFromLine, keyLine } from './key-lines.ts';
import { patience, STORE_ENVIRONMENT, withStores } from './with-stores.ts';

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
    async run(args, terminal) {
      const { values } = readArguments(args, EXPORT);
      const owner = values.owner === undefined ? undefined : ownerFrom(values.owner);
      const records = await withStores(terminal, ({ keys }) => keys.list(patience()));
      for (const record of records) {
        if (owner === undefined || record.owner === owner) terminal.out(JSON.stringify(keyLine(record)));
      }
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
