/** `umpire backup` and `umpire restore`: everything that a store holds, or one owner's part of it, in one file. */
import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { VERSION } from '../version.ts';
import { counted, ownerFrom, readArguments } from './arguments.ts';
import { ANY_OWNER_OPTION, type Command } from './command.ts';
import { addAll, entriesIn, FORMAT, refuseSkipped, writeLines } from './store-lines.ts';
import { STORE_ENVIRONMENT, withStores } from './with-stores.ts';

const OPTIONS = { owner: ANY_OWNER_OPTION } as const;

const both = ({ key, catalog }: { readonly key: number; readonly catalog: number }): string =>
  `${counted(key, 'key')} and ${counted(catalog, 'catalog')}`;

/** The commands `umpire backup` and `umpire restore`. */
export const BACKUP_COMMANDS: readonly Command[] = [
  {
    name: 'backup',
    usage: '[--owner NAME] FILE',
    summary: 'writes all keys and catalogs of the store to a file',
    notes: [
      'Keys are written as hashes, never as secrets. The server may run meanwhile. Only the user who runs the command can read the file. It is written completely or not at all, and replaces a file of that name.',
    ],
    positionals: [['FILE', 'the file to write']],
    options: OPTIONS,
    environment: STORE_ENVIRONMENT,
    failure: 'a key or a catalog could not be read and is not in the file',
    async run(args, terminal) {
      const { values, positionals } = readArguments(args, OPTIONS, ['FILE']);
      const [file = ''] = positionals;
      const owner = values.owner === undefined ? undefined : ownerFrom(values.owner);
      await withStores(terminal, async (stores) => {
        const partial = `${file}.${process.pid}.part`;
        const handle = await open(partial, 'wx', 0o600);
        try {
          const write = (line: object): Promise<unknown> => handle.write(`${JSON.stringify(line)}\n`);
          await write({
            kind: 'umpire-backup',
            format: FORMAT,
            version: VERSION,
            created_at: new Date().toISOString(),
          });
          const { key, catalog, skipped } = await writeLines(stores, undefined, owner, terminal, write);
          await write({ kind: 'end', keys: key, catalogs: catalog });
          await handle.sync();
          await rename(partial, file);
          terminal.out(`${both({ key, catalog })} are in ${file}`);
          refuseSkipped(skipped);
        } finally {
          await handle.close();
          await rm(partial, { force: true });
        }
      });
    },
  },
  {
    name: 'restore',
    usage: '[--owner NAME] FILE',
    summary: 'adds what a backup holds and the store does not; never overwrites',
    notes: [
      'The store may be of the other kind. To have exactly what the backup holds, restore into an empty store. Keys that were revoked and catalogs that were deleted since come back.',
    ],
    positionals: [['FILE', "what 'umpire backup' wrote"]],
    options: OPTIONS,
    environment: STORE_ENVIRONMENT,
    async run(args, terminal) {
      const { values, positionals } = readArguments(args, OPTIONS, ['FILE']);
      const [file = ''] = positionals;
      const owner = values.owner === undefined ? undefined : ownerFrom(values.owner);
      const crlfDelay = Number.POSITIVE_INFINITY;
      const added = { key: 0, catalog: 0 };
      const existed = { key: 0, catalog: 0 };
      const entries = {
        async *[Symbol.asyncIterator]() {
          const lines = createInterface({ input: createReadStream(file, 'utf8'), crlfDelay });
          for await (const entry of entriesIn(lines, file)) if ((owner ?? entry.owner) === entry.owner) yield entry;
        },
      };
      await addAll(terminal, entries, ({ kind }, isNew) => (isNew ? added : existed)[kind]++);
      terminal.out(`${both(added)} added`);
      terminal.out(`${both(existed)} existed and stay as they are`);
    },
  },
];
