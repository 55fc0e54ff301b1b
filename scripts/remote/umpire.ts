/** A service with a script's own models, on a free port, which is asked as by any caller. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the repository. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** A decision that is asked for. */
export interface Asked {
  readonly input: string;
  readonly instruction: string;
  readonly choices: readonly string[];
}

/** What the caller got. */
export interface Got {
  /** `200`, or the status and the code of an error. */
  readonly outcome: string;
  readonly message: string | undefined;
  readonly choice: string | undefined;
  readonly probabilities: Readonly<Record<string, number>>;
  readonly retryAfter: string | null;
  /** Milliseconds until the answer. */
  readonly took: number;
}

/** A running service. */
export interface Umpire {
  statusOf(model: string): Promise<string>;
  decide(model: string, asked: Asked): Promise<Got>;
  /** The service's log so far. */
  log(): string;
  stop(): Promise<void>;
}

/** Waits for so many milliseconds. */
export const pause = (milliseconds: number): Promise<unknown> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Prints a line. */
export const say = (text: string): boolean => process.stdout.write(`${text}\n`);

/** Prints a line about something that is wrong, and makes the script fail. */
export function complain(text: string): void {
  say(`WRONG: ${text}`);
  process.exitCode = 1;
}

/** Waits until something holds. Resolves to the seconds that it took; rejects after `patience` milliseconds. */
export async function until(holds: () => Promise<boolean> | boolean, patience = 180_000): Promise<number> {
  const began = performance.now();
  while (!(await holds())) {
    if (performance.now() - began > patience) throw new Error(`did not come to hold: ${holds}`);
    await pause(20);
  }
  return (performance.now() - began) / 1000;
}

/** A free port. */
export async function freePort(): Promise<number> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0));
    });
  });
}

/**
 * Runs a Python program of this folder and resolves to what it prints for each value, as JSON lines in and out. It must
 * not block this process, which holds connections to the service.
 */
export async function runPython(
  program: readonly string[],
  asked: readonly unknown[],
  env: Readonly<Record<string, string>> = {},
): Promise<readonly unknown[]> {
  const [python = '', script = '', ...args] = program;
  const out = await new Promise<string>((resolve, reject) => {
    const child = execFile(
      python,
      [join(root, 'scripts', 'remote', script), ...args],
      { env: { ...process.env, ...env }, maxBuffer: 2 ** 28 },
      (error, stdout) => (error === null ? resolve(stdout) : reject(error)),
    );
    child.stdin?.end(asked.map((each) => JSON.stringify(each)).join('\n'));
  });
  return out
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
}

/** Does work with a temporary folder, which is removed however the work ends. */
export async function withFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'umpire-remote-'));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A package of a model at an inference server. */
export interface RemotePackage {
  readonly id: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly limits: Readonly<Record<'input_tokens' | 'candidate_tokens' | 'choices', number>>;
  readonly canary: Asked & { readonly choice: string };
  /** Whether it has the tokenizer of the shipped encoder, as `tokenizer.json`. */
  readonly tokenizer?: boolean;
  /** Files that the manifest does not list, by name. */
  readonly beside?: Readonly<Record<string, string>>;
}

const shipped = join(root, 'models', 'minilm-l6', 'r2');

/** Writes a package into a folder of models. Resolves to the package's folder. */
export async function writeRemotePackage(models: string, source: RemotePackage): Promise<string> {
  const { id, options, limits, canary, tokenizer = false, beside = {} } = source;
  const folder = join(models, id, 'r1');
  await mkdir(folder, { recursive: true });
  const { files } = JSON.parse(await readFile(join(shipped, 'model.json'), 'utf8'));
  if (tokenizer) await cp(join(shipped, 'tokenizer.json'), join(folder, 'tokenizer.json'));
  for (const [name, content] of Object.entries(beside)) await writeFile(join(folder, name), content);
  await writeFile(
    join(folder, 'model.json'),
    JSON.stringify({
      schema: 1,
      ...{ id, revision: 'r1', family: 'remote', owned_by: 'scripts', status: 'ready', default: true },
      ...{ limits, options, canary },
      files: tokenizer ? { 'tokenizer.json': files['tokenizer.json'] } : {},
    }),
  );
  return folder;
}

/** Copies the shipped encoder `minilm-l6` into a folder of models, as the local model beside the remote one. */
export async function writeLocalPackage(models: string): Promise<void> {
  await cp(shipped, join(models, 'minilm-l6', 'r2'), { recursive: true });
}

async function startUmpire(models: string, ready: readonly string[]): Promise<Umpire> {
  const child = spawn(process.execPath, [join(root, 'src', 'main.ts')], {
    env: {
      ...process.env,
      ...{ PORT: '0', HOST: '127.0.0.1', UMPIRE_MODELS_DIR: models, UMPIRE_DATA_DIR: join(models, '..', 'data') },
      ...{ UMPIRE_ENGINES: '1', UMPIRE_DRAIN_DELAY: '0' },
      ...{ UMPIRE_RATE_ANONYMOUS: 'off', UMPIRE_CONCURRENCY_ANONYMOUS: 'off' },
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let log = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  await until(() => /"port":\d+/.test(log) || child.exitCode !== null);
  const base = `http://127.0.0.1:${/"port":(\d+)/.exec(log)?.[1]}`;
  const umpire: Umpire = {
    async statusOf(model) {
      // On a very busy machine connections may be refused for a moment.
      const response = await fetch(`${base}/v1/models/${model}`).catch(() => undefined);
      return ((await response?.json()) as { readonly status?: string } | undefined)?.status ?? 'not there';
    },
    decide: (model, asked) => decide(base, model, asked),
    log: () => log,
    stop: () => ended(child),
  };
  try {
    for (const model of ready) await until(async () => (await umpire.statusOf(model)) === 'ready');
  } catch (error) {
    await umpire.stop();
    throw new Error(
      `the service is not ready:\n${log
        .split('\n')
        .filter((line) => !/"level":"info"/.test(line))
        .join('\n')}`,
      {
        cause: error,
      },
    );
  }
  return umpire;
}

/** Does work with a service that has the models of a folder, once those in `ready` are ready; then ends the service. */
export async function withUmpire(
  models: string,
  ready: readonly string[],
  work: (umpire: Umpire) => Promise<void>,
): Promise<void> {
  const umpire = await startUmpire(models, ready);
  try {
    await work(umpire);
  } finally {
    await umpire.stop();
  }
}

async function decide(base: string, model: string, { input, instruction, choices }: Asked): Promise<Got> {
  const began = performance.now();
  const response = await fetch(`${base}/v1/decisions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, input, instruction, choices }),
  });
  const body = (await response.json()) as {
    readonly output?: { readonly choice: string; readonly probabilities: Readonly<Record<string, number>> };
    readonly error?: { readonly code: string; readonly message: string };
  };
  return {
    outcome: body.error === undefined ? String(response.status) : `${response.status} ${body.error.code}`,
    message: body.error?.message,
    choice: body.output?.choice,
    probabilities: body.output?.probabilities ?? {},
    retryAfter: response.headers.get('retry-after'),
    took: performance.now() - began,
  };
}

/** Ends a process with SIGTERM, and waits until it has ended. */
async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill('SIGTERM');
  await new Promise((resolve) => child.once('exit', resolve));
}

/**
 * The largest difference between two distributions over the same choices; a choice that one lacks counts as about 1.
 */
export function difference(a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): number {
  const choices = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Math.max(...[...choices].map((choice) => Math.abs((a[choice] ?? 2) - (b[choice] ?? 1))));
}

/** The softmax of logits divided by a temperature, by choice. */
export function distribution(
  choices: readonly string[],
  logits: readonly number[],
  temperature: number,
): Readonly<Record<string, number>> {
  const highest = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp((logit - highest) / temperature));
  const sum = weights.reduce((all, weight) => all + weight, 0);
  return Object.fromEntries(choices.map((choice, i) => [choice, (weights[i] ?? 0) / sum]));
}
