/** `umpire decide …`: decides the records of a file through a running service. */
import { readFile } from 'node:fs/promises';
import { choicesFault } from '../../domain/catalogs.ts';
import { isKey } from '../../domain/keys.ts';
import { messageOf } from '../../engine/errors.ts';
import { durationFrom, readArguments, urlFrom, wholeWithin } from '../arguments.ts';
import { type Command, flag, option, type Terminal, UsageError } from '../command.ts';
import { type DecideJob, decideFile } from './decide-file.ts';
import { DecidingClient } from './deciding-client.ts';
import { readTextFile } from './lines.ts';
import { entriesOf, RECORD_OPTIONS, readingFrom } from './records.ts';

/** The options that say which service decides, and for the holder of which key. */
export const SERVICE_OPTIONS = {
  url: option('URL', 'where the service is', 'PORT of this machine'),
  key: option('KEY', 'the key; other users of this machine may see it', 'UMPIRE_KEY'),
  'key-file': option('FILE', 'a file that holds the key'),
} as const;

const OPTIONS = {
  model: option('MODEL', 'the model, or one revision of it; needed'),
  catalog: option('ID', 'a stored catalog of the owner of the key'),
  choices: option('FILE', 'choices in place of a catalog: a JSON array, or one a line'),
  ...RECORD_OPTIONS,
  ...SERVICE_OPTIONS,
  out: option('FILE', 'where the answers go', 'standard output'),
  resume: flag('continues after what an interrupted run left in the file of --out'),
  format: option('json|csv', 'JSON lines or CSV', 'as the records'),
  probabilities: flag('also writes the probability of every choice'),
  sure: option('FILE', 'also writes which answers are sure, by what evaluate --costs --json found'),
  'at-once': option('N', 'the most requests at one time', '64'),
  patience: option('DURATION', 'how long to try while no text gets an answer', '2m'),
} as const;

/** Requests in progress, at most, that `--at-once` may ask for: no more records than this are read ahead. */
const MOST_AT_ONCE = 512;

/** The command `umpire decide`. */
export const DECIDE_COMMAND: Command = {
  name: 'decide',
  usage:
    '--model MODEL (--catalog ID | --choices FILE) [--key KEY | --key-file FILE] [--out FILE [--resume]] [OPTION]… [FILE]',
  summary: 'decides the texts of a file through a running service',
  notes: [
    "A record's fields are written as they are, followed by choice, confidence, model and learned (the digest, if the catalog learned), or by error. The records stay in order.",
    'The command begins with few requests at a time, and sends more for as long as the service answers them; 429 and 503 halve their number, and Retry-After is respected. A text that cannot be decided gets its error in its line, and the others go on.',
    'Ctrl-C leaves complete lines and ends with status 130. NODE_EXTRA_CA_CERTS names a private certificate authority.',
  ],
  positionals: [
    ['FILE', 'JSON lines {"input": …, "instruction": …}, or CSV with such a header (default: standard input)'],
  ],
  options: OPTIONS,
  environment: ['PORT', 'UMPIRE_KEY'],
  failure: 'a line has an error',
  async run(args, terminal) {
    const { values, positionals } = readArguments(args, OPTIONS, [], 1);
    const { model, catalog, choices, out, format } = values;
    if (model === undefined || model === '') throw new UsageError('--model MODEL is needed');
    if ((catalog === undefined) === (choices === undefined))
      throw new UsageError('either --catalog or --choices is needed');
    if (format !== undefined && format !== 'json' && format !== 'csv')
      throw new UsageError(`--format: '${format}' is neither json nor csv`);
    if (values.resume === true && out === undefined) throw new UsageError('--resume needs the file of --out');
    const atOnce = wholeWithin('--at-once', values['at-once'] ?? '64', 1, MOST_AT_ONCE);
    await decideFile(
      {
        client: new DecidingClient(serviceFrom(values.url, terminal), await keyFrom(values, terminal)),
        asked: {
          model,
          ...(catalog === undefined ? {} : { catalog }),
          ...(choices === undefined ? {} : { choices: await choicesIn(choices, terminal) }),
        },
        reading: readingFrom(values),
        file: positionals[0],
        out,
        resumes: values.resume === true,
        format,
        probabilities: values.probabilities === true,
        sure: values.sure === undefined ? undefined : await sureIn(values.sure),
        atOnce,
        patience: durationFrom(values.patience ?? '2m'),
      },
      terminal,
    );
  },
};

/** The service's address: the value of `--url`, or else that of one in the same environment. @throws UsageError. */
export function serviceFrom(text: string | undefined, { env }: Terminal): URL {
  // A service may listen on a Unix socket in place of a port: then --url says where its proxy is.
  const port = /^\d+$/.test(env.PORT ?? '') ? env.PORT : '8080';
  const base = urlFrom('--url', text ?? `http://localhost:${port}`);
  // The requests would not carry them.
  if (base.username !== '' || base.password !== '' || base.search !== '')
    throw new UsageError('--url: must not hold a user, a password or a query');
  return base;
}

/** The key that the options or the environment give, if any. @throws UsageError for what is no key. */
export async function keyFrom(
  { key, 'key-file': file }: { readonly [name in 'key' | 'key-file']?: string | undefined },
  { env }: Terminal,
): Promise<string | undefined> {
  if (key !== undefined && file !== undefined) throw new UsageError('--key or --key-file, not both');
  const found = file === undefined ? (key ?? (env.UMPIRE_KEY || undefined)) : (await readFile(file, 'utf8')).trim();
  // A text that cannot be a header's value would fail there, with an error message that contains it.
  if (found !== undefined && !isKey(found))
    throw new UsageError("this is not a key: it must be what 'umpire keys create' printed");
  return found;
}

/** What `evaluate --costs --json` wrote. @throws Error. */
async function sureIn(file: string): Promise<NonNullable<DecideJob['sure']>> {
  const [entry] = entriesOf(await readTextFile(file));
  const { model, sure } = entry !== undefined && 'value' in entry.read ? entry.read.value : {};
  const isTable = typeof sure === 'object' && sure !== null && !Array.isArray(sure);
  const isSound = isTable && Object.values(sure).every((each) => each === null || Number.isFinite(each));
  if (typeof model !== 'string' || !isSound)
    throw new Error(`${file}: is not what evaluate --costs --json writes: {"model": …, "sure": {CHOICE: confidence}}`);
  return { model, thresholds: sure as Record<string, number | null> };
}

// Choices in a file: a JSON array of texts, or one choice a line.

/** The choices in a file; those that look alike are named on standard error. Throws as `choicesFrom` does. */
export async function choicesIn(file: string, terminal: Terminal): Promise<readonly string[]> {
  const choices = choicesFrom(await readTextFile(file), file);
  nameLookalikes(choices, terminal);
  return choices;
}

/** Names choices on standard error that differ in case, white space, invisible characters or normalisation alone. */
export function nameLookalikes(choices: readonly string[], terminal: Terminal): void {
  const seen = new Map<string, string>();
  for (const choice of choices) {
    const same = seen.get(plainly(choice));
    seen.set(plainly(choice), choice);
    if (same === undefined) continue;
    terminal.err(`${JSON.stringify(same)} and ${JSON.stringify(choice)} are two choices that look alike; both stay`);
  }
}

/** A text without case, normalisation, invisible characters, and white space at its ends or twice. */
export function plainly(text: string): string {
  return text
    .normalize('NFKC')
    .replaceAll(/\p{Cf}/gu, '')
    .replaceAll(/\s+/gu, ' ')
    .trim()
    .toLowerCase();
}

/** The choices in a file's text. Throws Error if it cannot be read, and DomainError if a catalog may not have them. */
function choicesFrom(text: string, file: string): readonly string[] {
  let choices: unknown = text.split(/\r?\n/).filter((line) => line !== '');
  try {
    // A line may look like the beginning of JSON; only an array has to be some.
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object') choices = value;
  } catch (error) {
    if (text.trimStart().startsWith('['))
      throw new Error(`${file}: is not JSON: ${messageOf(error)}`, { cause: error });
  }
  if (!Array.isArray(choices) || !choices.every((choice) => typeof choice === 'string'))
    throw new Error(`${file}: the choices must be a JSON array of texts, or one a line`);
  const fault = choicesFault(choices);
  if (fault !== undefined) throw fault;
  return choices;
}
