/**
 * `umpire keys …`: creates, lists, rotates and revokes API keys. The service itself does none of this. One file: the
 * commands, and the line in which a key travels between them.
 */
import { hashKey, isKey, isOwnerName, mintKey, mintKeyId } from '../../domain/keys.ts';
import { parseCount, parseRate } from '../../domain/limit-settings.ts';
import type { Parser } from '../../domain/settings.ts';
import { fromKeyFields, isLabel, MAX_LABEL, toKeyFields } from '../../stores/key-record.ts';
import { type KeyLimits, type KeyRecord, type KeyStore, REVOKED, type UnreadableKey } from '../../stores/key-store.ts';
import { StoreCorrupt } from '../../stores/stores.ts';
import { durationFrom, ownerFrom, printTable, readArguments } from '../arguments.ts';
import { type Command, JSON_OPTION, OWNER_OPTION, type Terminal, UsageError } from '../command.ts';
import { patience, STORE_ENVIRONMENT, withStores } from '../with-stores.ts';

const LABEL = { type: 'string', value: 'TEXT', meaning: "what 'keys list' calls it" } as const;

const CREATE = {
  owner: OWNER_OPTION,
  label: LABEL,
  rate: {
    type: 'string',
    value: 'RATE',
    meaning: "requests, such as 50/s or '600/m, burst 100', or off",
    otherwise: "the server's UMPIRE_RATE_KEY",
  },
  concurrency: {
    type: 'string',
    value: 'N',
    meaning: 'decisions at one time, or off',
    otherwise: "the server's UMPIRE_CONCURRENCY_KEY",
  },
  quota: {
    type: 'string',
    value: 'N',
    meaning: 'decisions a day (UTC), or off',
    otherwise: "the server's UMPIRE_QUOTA_KEY",
  },
} as const;

const LIST = {
  owner: { type: 'string', value: 'NAME', meaning: 'of this owner alone' },
  json: JSON_OPTION,
} as const;

const ROTATE = {
  grace: {
    type: 'string',
    value: 'TIME',
    meaning: 'such as 30s, 15m, 24h or 7d: how long the old key still works',
    otherwise: '0s',
  },
  label: { ...LABEL, otherwise: "the old key's" },
} as const;

/** The commands `umpire keys create`, `list`, `rotate` and `revoke`. */
export const KEY_COMMANDS: readonly Command[] = [
  {
    name: 'keys create',
    usage: '--owner NAME [--label TEXT] [--rate RATE] [--concurrency N] [--quota N]',
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
      const all = await withStores(terminal, ({ keys }) => keys.list(patience()));
      const records = all.records.filter((record) => owner === undefined || record.owner === owner);
      const unreadable = unreadableOf(owner, all.unreadable);
      if (values.json === true) {
        const broken = unreadable.map((key) => ({ key_id: key.name, owner: key.owner ?? null, readable: false }));
        terminal.out(JSON.stringify([...records.map(plain), ...broken]));
        refuseUnreadable(unreadable);
        return;
      }
      const rows = records.map((record) => [
        record.keyId,
        record.owner,
        record.label ?? '',
        record.createdAt,
        record.lastUsedAt === undefined ? 'never' : new Date(record.lastUsedAt).toISOString(),
        stateText(record),
        limitsText(record.limits),
      ]);
      const broken = unreadable.map(({ name, owner: whose = '' }) => [name, whose, '', '', '', 'not readable', '']);
      printTable(terminal, ['KEY', 'OWNER', 'LABEL', 'CREATED', 'LAST USED', 'STATE', 'LIMITS'], [...rows, ...broken]);
      refuseUnreadable(unreadable);
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
        const { hash, named } = await toRevoke(keys, secret === undefined ? { name } : { hash: hashKey(secret) });
        if (!(await keys.end(hash, REVOKED, 'revocation', patience()))) throw new Error('there is no such key');
        terminal.out(`${named} is revoked; every server refuses it within 5 seconds`);
      });
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

/** The hash of a key that is to be revoked, and how it is called. A record that cannot be read is no hindrance. */
async function toRevoke(
  keys: KeyStore,
  key: { readonly name: string } | { readonly hash: string },
): Promise<{ readonly hash: string; readonly named: string }> {
  const found = 'name' in key ? await find(keys, key.name) : await keys.find(key.hash, patience()).catch(corrupt);
  if (found === undefined) throw new Error('there is no such key');
  if (found instanceof StoreCorrupt) return { hash: (key as { hash: string }).hash, named: 'the key' };
  if ('keyId' in found) return { hash: found.hash, named: `${found.keyId} of ${found.owner}` };
  return { hash: found.hash, named: found.name };
}

function corrupt(error: unknown): StoreCorrupt {
  if (error instanceof StoreCorrupt) return error;
  throw error;
}

function limitsFrom(values: {
  readonly rate?: string | undefined;
  readonly concurrency?: string | undefined;
  readonly quota?: string | undefined;
}): KeyLimits {
  const read = <T>(name: string, text: string | undefined, parse: Parser<T>) => {
    if (text === undefined) return {};
    const outcome = parse(text);
    if ('problem' in outcome) throw new UsageError(`--${name}: ${outcome.problem}`);
    return { [name]: outcome.value };
  };
  return {
    ...read('rate', values.rate, parseRate),
    ...read('concurrency', values.concurrency, parseCount),
    ...read('quota', values.quota, parseCount),
  };
}

function labelFrom(text: string | undefined): string | undefined {
  if (text === undefined || isLabel(text)) return text;
  throw new UsageError(`--label: must be one line of 1 to ${MAX_LABEL} characters`);
}

function stateOf({ endsAt }: KeyRecord): 'live' | 'ending' | 'ended' {
  if (endsAt === undefined) return 'live';
  return endsAt <= Date.now() ? 'ended' : 'ending';
}

function stateText(record: KeyRecord): string {
  const { endsAt, endedBy } = record;
  if (endsAt === undefined) return 'live';
  // REVOKED is not a time, so there is none to show.
  if (endsAt === REVOKED) return PAST[endedBy ?? 'revocation'];
  const verb = endsAt > Date.now() ? 'ends' : endedBy === undefined ? 'ended' : PAST[endedBy];
  return `${verb} ${new Date(endsAt).toISOString()}`;
}

/** The state of an ended key, by what ended it. */
const PAST = { rotation: 'rotated', revocation: 'revoked' } as const;

/** The keys that cannot be read and may be this owner's; anybody's if undefined. */
export function unreadableOf(
  owner: string | undefined,
  unreadable: readonly UnreadableKey[],
): readonly UnreadableKey[] {
  return unreadable.filter((key) => owner === undefined || key.owner === undefined || key.owner === owner);
}

/** @throws Error if there is a key that could not be read, once all others are shown. */
function refuseUnreadable({ length }: readonly UnreadableKey[]): void {
  if (length > 0) throw new Error(`${length} keys could not be read; 'umpire keys revoke' ends them all the same`);
}

/** A key in the JSON that `--json` prints. */
function plain(record: KeyRecord): object {
  const time = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString());
  return {
    key_id: record.keyId,
    readable: true,
    owner: record.owner,
    label: record.label ?? null,
    created_at: record.createdAt,
    last_used_at: time(record.lastUsedAt),
    state: stateOf(record),
    ends_at: time(record.endsAt === REVOKED ? undefined : record.endsAt),
    ended_by: record.endedBy ?? null,
    limits: record.limits,
  };
}

function limitsText({ rate, concurrency, quota }: KeyLimits): string {
  const parts = [
    rate === undefined ? undefined : rate === 'off' ? 'rate off' : `rate ${rate.perSecond}/s, burst ${rate.burst}`,
    concurrency === undefined ? undefined : `concurrency ${concurrency}`,
    quota === undefined ? undefined : `quota ${quota}`,
  ];
  return parts.filter((part) => part !== undefined).join('; ') || 'default';
}

// A key as one line of JSON, for another store or a backup: its hash and what is kept with it, never its secret.

/** The fields of a key's line; undefined for a key that no import would take. */
export function keyLine(record: KeyRecord): object | undefined {
  const { hash, endsAt, lastUsedAt } = record;
  const fields = Object.entries(toKeyFields(record)).filter(([, text]) => text !== '');
  const line = {
    hash,
    ...Object.fromEntries(fields),
    ...(endsAt === undefined ? {} : { ends_at: endsAt }),
    ...(lastUsedAt === undefined ? {} : { last_used_at: lastUsedAt }),
  };
  return keyFromLine(line) === undefined ? undefined : line;
}

/** The key of a line's fields; undefined if they are not those of a key. */
export function keyFromLine(fields: Readonly<Record<string, unknown>>): KeyRecord | undefined {
  try {
    const record = fromKeyFields(String(fields.hash), fields);
    return /^[0-9a-f]{64}$/.test(record.hash) && isOwnerName(record.owner) ? record : undefined;
  } catch {
    return undefined;
  }
}
