/** `umpire keys …`: API keys are made, listed, rotated and revoked here and nowhere else. */
import { hashKey, isKey, mintKey, mintKeyId } from '../domain/keys.ts';
import { parseCount, parseRate } from '../domain/limit-settings.ts';
import { type KeyLimits, type KeyRecord, type KeyStore, REVOKED } from '../stores/key-store.ts';
import { durationFrom, ownerFrom, readArguments } from './arguments.ts';
import { type Command, type Terminal, UsageError } from './command.ts';
import { printTable } from './table.ts';
import { patience, withStores } from './with-stores.ts';

const limitOptions = {
  rate: { type: 'string' },
  concurrency: { type: 'string' },
  quota: { type: 'string' },
} as const;

/** The commands. */
export const keyCommands: readonly Command[] = [
  {
    name: 'keys create',
    usage: "--owner NAME [--rate '50/s, burst 100'] [--concurrency N] [--quota N]",
    summary: 'makes a key and prints it, this once, as the last line',
    async run(args, terminal) {
      const { values } = readArguments(args, { owner: { type: 'string' }, ...limitOptions });
      const owner = ownerFrom(values.owner);
      const limits = limitsFrom(values);
      show(terminal, await withStores(terminal, ({ keys }) => issue(keys, owner, limits)));
    },
  },
  {
    name: 'keys list',
    usage: '[--owner NAME]',
    summary: 'shows all keys, without their secrets',
    async run(args, terminal) {
      const { values } = readArguments(args, { owner: { type: 'string' } });
      const owner = values.owner === undefined ? undefined : ownerFrom(values.owner);
      const records = await withStores(terminal, ({ keys }) => keys.list(patience()));
      const rows = records
        .filter((record) => owner === undefined || record.owner === owner)
        .map((record) => [record.keyId, record.owner, record.createdAt, stateOf(record), limitsText(record.limits)]);
      printTable(terminal, ['KEY', 'OWNER', 'CREATED', 'STATE', 'LIMITS'], rows);
    },
  },
  {
    name: 'keys rotate',
    usage: 'KEY_ID [--grace 24h]',
    summary: 'makes a key with the same owner and limits; the old one ends at once, or after the grace time',
    async run(args, terminal) {
      const { values, positionals } = readArguments(args, { grace: { type: 'string' } }, [1, 1]);
      const grace = values.grace === undefined ? 0 : durationFrom(values.grace);
      await withStores(terminal, async ({ keys }) => {
        const old = await find(keys, positionals[0] ?? '');
        if (old.endsAt !== undefined && old.endsAt <= Date.now())
          throw new Error(`${old.keyId} has ended: create a key instead`);
        // The new one first, and shown whatever happens to the old one: no client may be locked out by a command that was cut off.
        const issued = await issue(keys, old.owner, old.limits);
        const endsAt = grace === 0 ? REVOKED : Date.now() + grace;
        try {
          await keys.end(old.hash, endsAt, patience());
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
    summary: "ends a key; with '-' the key itself is read from standard input, for one that leaked",
    async run(args, terminal) {
      const { positionals } = readArguments(args, {}, [1, 1]);
      const name = positionals[0] ?? '';
      const secret = name === '-' ? (await terminal.input()).trim() : undefined;
      if (secret !== undefined && !isKey(secret)) throw new Error('standard input is not a key');
      await withStores(terminal, async ({ keys }) => {
        const record = secret === undefined ? await find(keys, name) : await keys.find(hashKey(secret), patience());
        if (record === undefined) throw new Error('there is no such key');
        await keys.end(record.hash, REVOKED, patience());
        terminal.out(`${record.keyId} of ${record.owner} is revoked; every server refuses it within 5 seconds`);
      });
    },
  },
];

interface IssuedKey {
  readonly record: KeyRecord;
  readonly key: string;
}

async function issue(keys: KeyStore, owner: string, limits: KeyLimits): Promise<IssuedKey> {
  const key = mintKey();
  const record = { keyId: mintKeyId(), hash: hashKey(key), owner, limits, createdAt: new Date().toISOString() };
  if (!(await keys.add(record, patience()))) throw new Error('the new key exists already');
  return { record, key };
}

/** The key is the last line, so that a script can take it. */
function show({ out }: Terminal, { record, key }: IssuedKey): void {
  out(`${record.keyId} of ${record.owner}. The key is shown this once; keep it like a password:`);
  out(key);
}

async function find(keys: KeyStore, keyId: string): Promise<KeyRecord> {
  if (isKey(keyId))
    throw new UsageError('name the key by its KEY_ID: a key on the command line stays in the history of the shell');
  const record = (await keys.list(patience())).find((candidate) => candidate.keyId === keyId);
  if (record === undefined) throw new Error(`there is no key '${keyId}'; 'umpire keys list' shows them`);
  return record;
}

function limitsFrom(values: {
  readonly rate?: string | undefined;
  readonly concurrency?: string | undefined;
  readonly quota?: string | undefined;
}): KeyLimits {
  const read = <T>(
    name: string,
    text: string | undefined,
    parse: (text: string) => { value: T } | { problem: string },
  ) => {
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

function stateOf({ endsAt }: KeyRecord): string {
  if (endsAt === undefined) return 'live';
  if (endsAt === REVOKED) return 'revoked';
  return `${endsAt <= Date.now() ? 'ended' : 'ends'} ${new Date(endsAt).toISOString()}`;
}

function limitsText({ rate, concurrency, quota }: KeyLimits): string {
  const parts = [
    rate === undefined ? undefined : rate === 'off' ? 'rate off' : `rate ${rate.perSecond}/s, burst ${rate.burst}`,
    concurrency === undefined ? undefined : `concurrency ${concurrency}`,
    quota === undefined ? undefined : `quota ${quota}`,
  ];
  return parts.filter((part) => part !== undefined).join('; ') || 'default';
}
