/** `umpire keys …`: creates, lists, rotates, revokes and moves API keys. The service itself does none of this. */
import { hashKey, isKey, mintKey, mintKeyId } from '../../domain/keys.ts';
import { parseCount, parseRate } from '../../domain/limit-settings.ts';
import { isLabel, MAX_LABEL } from '../../stores/key-record.ts';
import { type KeyLimits, type KeyRecord, type KeyStore, REVOKED, type UnreadableKey } from '../../stores/key-store.ts';
import { counted, durationFrom, ownerFrom, printList, readArguments } from '../arguments.ts';
import {
  ANY_OWNER_OPTION,
  type Command,
  JSON_OPTION,
  OWNER_OPTION,
  option,
  type Terminal,
  UsageError,
} from '../command.ts';
import { addAll, exportLines, importedFrom, keysOf } from '../store-lines.ts';
import { ifCorrupt, patience, STORE_ENVIRONMENT, withStores } from '../with-stores.ts';

const CREATE = {
  owner: OWNER_OPTION,
  label: option('TEXT', "what 'keys list' calls it"),
  rate: option('RATE', "requests, such as 50/s or '600/m, burst 100', or off", "the server's UMPIRE_RATE_KEY"),
  concurrency: option('N', 'decisions at one time, or off', "the server's UMPIRE_CONCURRENCY_KEY"),
  quota: option('N', 'decisions a day (UTC), or off', "the server's UMPIRE_QUOTA_KEY"),
} as const;
const LIST = { owner: ANY_OWNER_OPTION, json: JSON_OPTION } as const;
const ROTATE = {
  grace: option('TIME', 'such as 30s, 15m, 24h or 7d: how long the old key still works', '0s'),
  label: option('TEXT', "what 'keys list' calls it", "the old key's"),
} as const;
const EXPORT = { owner: ANY_OWNER_OPTION } as const;

/** The commands `umpire keys create`, `list`, `rotate`, `revoke`, `export` and `import`. */
export const KEY_COMMANDS: readonly Command[] = [
  {
    name: 'keys create',
    usage: '--owner NAME [OPTION]…',
    summary: 'makes a key and prints it, this once, as the last line',
    options: CREATE,
    environment: STORE_ENVIRONMENT,
    async run(args, terminal) {
      const { values } = readArguments(args, CREATE);
      const owner = ownerFrom(values.owner);
      const limits = limitsFrom(values);
      const label = labelFrom(values.label);
      show(terminal, await withStores(terminal, ({ keys }) => issue(keys, owner, limits, label), { creates: true }));
    },
  },
  {
    name: 'keys list',
    usage: '[--owner NAME] [--json]',
    summary: 'shows all keys, without their secrets',
    notes: [
      'Servers write the last use of a key once a minute. A key without limits of its own has those of the server that is asked.',
    ],
    options: LIST,
    environment: STORE_ENVIRONMENT,
    failure: 'the record of a key could not be read',
    async run(args, terminal) {
      const { values } = readArguments(args, LIST);
      const owner = values.owner === undefined ? undefined : ownerFrom(values.owner);
      const { records, unreadable } = await withStores(terminal, ({ keys }) => keysOf(keys, owner));
      const head = ['KEY', 'OWNER', 'LABEL', 'CREATED', 'LAST USED', 'STATE', 'LIMITS'];
      const broken = unreadable.map(({ name, owner: whose }) => ({
        row: [name, whose ?? '', '', '', '', 'not readable', ''],
        plain: { key_id: name, owner: whose ?? null, readable: false },
      }));
      const sound = records.map((record) => ({ row: rowOf(record), plain: plain(record) }));
      printList(terminal, values.json, head, [...sound, ...broken]);
      if (unreadable.length > 0)
        throw new Error(
          `${counted(unreadable.length, 'key')} could not be read; 'umpire keys revoke' ends them all the same`,
        );
    },
  },
  {
    name: 'keys rotate',
    usage: 'KEY_ID [--grace TIME] [--label TEXT]',
    summary: 'makes a key with the same owner and limits; the old one ends, at once or later',
    positionals: [['KEY_ID', 'the old key, as keys list shows it']],
    options: ROTATE,
    environment: STORE_ENVIRONMENT,
    async run(args, terminal) {
      const { values, positionals } = readArguments(args, ROTATE, ['KEY_ID']);
      const grace = values.grace === undefined ? 0 : durationFrom(values.grace);
      const label = labelFrom(values.label);
      await withStores(terminal, async ({ keys }) => {
        const old = await find(keys, positionals[0] ?? '');
        if (!('keyId' in old)) throw new Error(`the record of key ${old.name} is not readable: create a key instead`);
        if (old.endsAt !== undefined && old.endsAt <= Date.now())
          throw new Error(`${old.keyId} has ended: create a key instead`);
        // A second rotation could end the key before the time that its holder was promised.
        if (old.endsAt !== undefined) {
          throw new Error(
            `${old.keyId} was rotated already and works until ${new Date(old.endsAt).toISOString()}; 'umpire keys revoke' ends it now`,
          );
        }
        // The new key is made first, and shown whatever happens to the old one: a command that is interrupted must not
        // leave a client without a key.
        const issued = await issue(keys, old.owner, old.limits, label ?? old.label);
        const endsAt = grace === 0 ? REVOKED : Date.now() + grace;
        try {
          await keys.end(old.hash, endsAt, 'rotation', patience());
          terminal.out(`${old.keyId} ${grace === 0 ? 'has ended' : `ends ${new Date(endsAt).toISOString()}`}`);
        } finally {
          show(terminal, issued);
        }
      });
    },
  },
  {
    name: 'keys revoke',
    usage: 'KEY_ID | -',
    summary: 'ends a key; every server refuses it within 5 seconds',
    positionals: [
      ['KEY_ID', 'the key, as keys list shows it'],
      ['-', 'reads the key itself from standard input, for one that leaked'],
    ],
    options: {},
    environment: STORE_ENVIRONMENT,
    async run(args, terminal) {
      const { positionals } = readArguments(args, {}, ['KEY_ID']);
      const name = positionals[0] ?? '';
      const secret = name === '-' ? (await terminal.input()).trim() : undefined;
      if (secret !== undefined && !isKey(secret)) throw new Error('standard input is not a key');
      await withStores(terminal, async ({ keys }) => {
        const found = secret === undefined ? await find(keys, name) : await withHash(keys, hashKey(secret));
        if (!(await keys.end(found.hash, REVOKED, 'revocation', patience()))) throw new Error('there is no such key');
        const named = 'keyId' in found ? `${found.keyId} of ${found.owner}` : found.name;
        terminal.out(`${named} is revoked; every server refuses it within 5 seconds`);
      });
    },
  },
  {
    name: 'keys export',
    usage: '[--owner NAME]',
    summary: 'writes what is kept of the keys, without their secrets, for another store',
    notes: ['It writes one JSON object a line to standard output.'],
    options: EXPORT,
    environment: STORE_ENVIRONMENT,
    failure: 'a key could not be read',
    async run(args, terminal) {
      const { owner } = readArguments(args, EXPORT).values;
      await exportLines(terminal, 'key', owner === undefined ? undefined : ownerFrom(owner));
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
      const entries = await importedFrom(terminal, readArguments(args, {}, [], 1).positionals[0], 'key');
      let added = 0;
      await addAll(terminal, entries, (_, isNew) => (added += Number(isNew)));
      terminal.out(`${added} added, ${entries.length - added} existed`);
    },
  },
];

interface IssuedKey {
  readonly record: KeyRecord;
  readonly key: string;
}

async function issue(keys: KeyStore, owner: string, limits: KeyLimits, label: string | undefined): Promise<IssuedKey> {
  const key = mintKey();
  const record: KeyRecord = {
    keyId: mintKeyId(),
    hash: hashKey(key),
    owner,
    limits,
    createdAt: new Date().toISOString(),
    ...(label === undefined ? {} : { label }),
  };
  if (!(await keys.add(record, patience()))) throw new Error('the new key exists already');
  return { record, key };
}

/** Prints a new key, as the last line, so that a script can take it from there. */
function show({ out }: Terminal, { record, key }: IssuedKey): void {
  out(`${record.keyId} of ${record.owner}. The key is shown this once; keep it like a password:`);
  out(key);
}

async function find(keys: KeyStore, keyId: string): Promise<KeyRecord | UnreadableKey> {
  if (isKey(keyId))
    throw new UsageError('name the key by its KEY_ID: a key on the command line stays in the history of the shell');
  const { records, unreadable } = await keys.list(patience());
  const found = records.find((key) => key.keyId === keyId) ?? unreadable.find(({ name }) => name === keyId);
  if (found === undefined) throw new Error(`there is no key '${keyId}'; 'umpire keys list' shows them`);
  return found;
}

/** The key with this hash. One whose record cannot be read has no name, which is no hindrance to ending it. */
async function withHash(keys: KeyStore, hash: string): Promise<KeyRecord | UnreadableKey> {
  const found = await keys.find(hash, patience()).catch((error: unknown) => {
    ifCorrupt(error);
    return { hash, name: 'the key', owner: undefined };
  });
  if (found === undefined) throw new Error('there is no such key');
  return found;
}

const PARSERS = { rate: parseRate, concurrency: parseCount, quota: parseCount } as const;

function limitsFrom(values: { readonly [name in keyof typeof PARSERS]?: string | undefined }): KeyLimits {
  const limits = Object.entries(PARSERS).flatMap(([name, parse]) => {
    const value = values[name as keyof typeof PARSERS];
    if (value === undefined) return [];
    const outcome = parse(value);
    if ('problem' in outcome) throw new UsageError(`--${name}: ${outcome.problem}`);
    return [[name, outcome.value]];
  });
  return Object.fromEntries(limits);
}

function labelFrom(text: string | undefined): string | undefined {
  if (text === undefined || isLabel(text)) return text;
  throw new UsageError(`--label: must be one line of 1 to ${MAX_LABEL} characters`);
}

/** The state of an ended key, by what ended it. */
const PAST = { rotation: 'rotated', revocation: 'revoked' } as const;

function rowOf({ keyId, owner, label = '', createdAt, lastUsedAt, endsAt, endedBy, limits }: KeyRecord): string[] {
  const used = timeText(lastUsedAt) ?? 'never';
  const past = endedBy === undefined ? undefined : PAST[endedBy];
  // REVOKED is not a time, so there is none to show.
  const ended = endsAt === REVOKED ? (past ?? PAST.revocation) : `${past ?? 'ended'} ${timeText(endsAt)}`;
  const isOver = endsAt !== undefined && endsAt <= Date.now();
  const state = endsAt === undefined ? 'live' : isOver ? ended : `ends ${timeText(endsAt)}`;
  return [keyId, owner, label, createdAt, used, state, limitsText(limits)];
}

/** A key in the JSON that `--json` prints. */
function plain({ keyId, owner, label, createdAt, lastUsedAt, endsAt, endedBy, limits }: KeyRecord): object {
  return {
    key_id: keyId,
    readable: true,
    owner,
    label: label ?? null,
    created_at: createdAt,
    last_used_at: timeText(lastUsedAt),
    state: endsAt === undefined ? 'live' : endsAt <= Date.now() ? 'ended' : 'ending',
    ends_at: timeText(endsAt === REVOKED ? undefined : endsAt),
    ended_by: endedBy ?? null,
    limits,
  };
}

function timeText(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}

function limitsText(limits: KeyLimits): string {
  const parts = Object.entries(limits).map(([name, value]) =>
    typeof value === 'object' ? `${name} ${value.perSecond}/s, burst ${value.burst}` : `${name} ${value}`,
  );
  return parts.join('; ') || 'default';
}
