/**
 * Learning that is killed: `umpire learn` runs beside a server that decides all the while, and the command, the server
 * or the store is killed at one of its steps. Whatever decides must be a state that was taught as a whole: each answer
 * names its digest, and its probabilities are that state's, number for number.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createStoreBudget } from '../../src/stores/budget.ts';
import { UNBOUNDED } from '../../src/stores/catalog-store.ts';
import { writePackage } from '../engine/support/packages.ts';
import { CHILD_ENV } from './child-env.ts';
import { keepCalling } from './keep-calling.ts';
import { issueKey } from './keys.ts';
import { openStores } from './open-stores.ts';
import { freePort, startRedis, type TestRedis } from './redis.ts';
import { type ServerProcess, startServer } from './server-process.ts';
import { temporaryFolder } from './temporary-folder.ts';

/**
 * What is killed; `interrupt` is Ctrl-C for the command. SQLite is no process: who is killed at it is
 * one of the others.
 */
export type Victim = 'command' | 'interrupt' | 'server' | 'store';

/** What the command has just said when the kill comes: each line ends a step of it. */
export type Step = keyof typeof SAID;

/** One kill. */
export interface Kill {
  readonly victim: Victim;
  readonly step: Step;
  /** Milliseconds after the step. */
  readonly delay: number;
}

/** What came of a kill. */
export interface KillResult extends Kill {
  /** The command's exit status; null if it was killed. */
  readonly status: number | null;
  /** What decided at the end. */
  readonly after: 'old' | 'new';
}

/** What came of all. */
export interface KilledLearning {
  readonly kills: readonly KillResult[];
  readonly answers: number;
  /** Calls that had no answer, by what they had instead. */
  readonly faults: Readonly<Record<string, number>>;
  /** Answers that no whole state gives, and states that are not what the command said; must be empty. */
  readonly wrong: readonly string[];
}

const SAID = {
  'store opened': /^store: /m,
  'examples are decided': /^deciding \d+ examples/m,
  'figures are there': /^on held-out examples:/m,
  'what came of it is printed': /^after:/m,
  written: /^letters: learned /m,
} as const;

/** In the order in which the command comes to them. */
export const STEPS = Object.keys(SAID) as readonly Step[];

const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
const CHOICES = ['xyz', 'abc', 'mno'];
const TEXTS = ['abc defg 1', 'mno ghij 2', 'xyz klm 3'];
const FRESH_MS = 1_000;
const LONGEST_MS = 60_000;
/** What a caller may be told while something is killed. */
const EXCUSED =
  /^Error: (503 (store_unavailable|draining|overloaded|not_ready|deadline_exceeded|model_unavailable)|no answer)$/;

interface Deployment {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly redis: TestRedis | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly port: number;
  server: ServerProcess;
}

/** What decided a text, and how. */
interface Answer {
  readonly digest: string;
  readonly probabilities: string;
}

/**
 * Kills, one after the other, on one deployment. Two callers decide all the while, each `pause` milliseconds after its
 * last answer. Resolves when all is stopped and removed again.
 */
export async function killLearning(
  kind: 'sqlite' | 'redis',
  kills: readonly Kill[],
  told: (result: KillResult) => void = () => {},
  pause = 5,
): Promise<KilledLearning> {
  const folder = temporaryFolder();
  const redis = kind === 'redis' ? await startRedis(['--appendonly', 'yes']) : undefined;
  let server: ServerProcess | undefined;
  let calling: ReturnType<typeof keepCalling> | undefined;
  try {
    const deployment = await deploy(folder, redis);
    server = deployment.server;
    const files = [0, 1].map((shift) => examplesFile(folder, shift));
    const wrong: string[] = [];
    /** By digest, the probabilities of each text. */
    const states = new Map<string, readonly string[]>();
    for (const file of files) {
      const { status, output } = await runLearn(deployment, file).ended;
      if (status !== 0) throw new Error(`it cannot be taught without a kill:\n${output}`);
      await sleep(FRESH_MS);
      const answers = await Promise.all(TEXTS.map((text) => ask(deployment, text)));
      states.set(
        answers[0]?.digest ?? '',
        answers.map(({ probabilities }) => probabilities),
      );
    }
    const digests = [...states.keys()];
    if (digests.length !== 2 || digests.includes('')) throw new Error(`two states are needed: ${digests.join(', ')}`);

    calling = keepCalling([
      {
        name: 'decisions',
        callers: 2,
        pause,
        call: async (turn) => {
          const place = turn % TEXTS.length;
          const { digest, probabilities } = await ask(deployment, TEXTS[place] as string);
          if (states.get(digest)?.[place] !== probabilities) wrong.push(`${digest || 'no state'}: ${probabilities}`);
          return undefined;
        },
      },
    ]);
    const results: KillResult[] = [];
    let at = 1;
    for (const kill of kills) {
      const [old, next] = [digests[at] as string, digests[1 - at] as string];
      const { status, output } = await killAt(deployment, kill, files[1 - at] as string);
      server = deployment.server;
      await sleep(FRESH_MS);
      const { digest } = await untilAnswered(deployment);
      const said = output.includes(`digest ${next}`);
      if (said && digest !== next) wrong.push(`the command said ${next}, ${digest || 'no state'} decides`);
      if (digest !== old && digest !== next) wrong.push(`${digest || 'no state'} decides after ${kill.victim}`);
      if (digest === next) at = 1 - at;
      const result = { ...kill, status, after: digest === next ? 'new' : 'old' } as const;
      results.push(result);
      told(result);
    }
    const [tally] = await calling.stop();
    const faults = tally?.faults ?? {};
    wrong.push(...Object.keys(faults).filter((fault) => !EXCUSED.test(fault)));
    return { kills: results, answers: tally?.answered ?? 0, faults, wrong };
  } finally {
    await calling?.stop();
    await server?.stop();
    await redis?.stop();
  }
}

async function deploy(folder: string, redis: TestRedis | undefined): Promise<Deployment> {
  const models = join(folder, 'models');
  await writePackage(models);
  const place: Record<string, string> =
    redis === undefined ? { UMPIRE_DATA_DIR: join(folder, 'data') } : { REDIS_URL: redis.url };
  const env = { ...place, UMPIRE_MODELS_DIR: models };
  const stores = await openStores(place);
  const { headers } = await issueKey(stores, 'acme');
  const createdAt = '2026-01-02T03:04:05.678Z';
  const record = { id: 'letters', model: 'tiny', choices: CHOICES, version: '1', visibility: 'private', createdAt };
  await stores.catalogs.create('acme', record, UNBOUNDED, createStoreBudget(10_000));
  await stores.close();
  const port = await freePort();
  return { folder, env, redis, headers, port, server: await startServer({ ...env, PORT: String(port) }) };
}

/** Examples whose labels lie so many choices beside the letters of their texts. */
function examplesFile(folder: string, shift: number): string {
  const letters = ['abc', 'mno', 'xyz'];
  const lines = Array.from({ length: 60 }, (_, i) => {
    const input = `${letters[i % 3]} ${'defghijkl'.slice(i % 7)} ${i}`;
    return `${JSON.stringify({ input, instruction: 'which', label: letters[(i + 1 + shift) % 3] })}\n`;
  });
  const file = join(folder, `examples-${shift}.jsonl`);
  writeFileSync(file, lines.join(''));
  return file;
}

/** Starts `umpire learn` as a process of its own. `heard` gets all that it wrote so far. */
function runLearn(
  { env }: Deployment,
  file: string,
  heard: (output: string) => void = () => {},
): {
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<{ readonly status: number | null; readonly output: string }>;
} {
  const child = spawn(process.execPath, [CLI, 'learn', '--owner', 'acme', '--catalog', 'letters', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...CHILD_ENV, ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      heard(output);
    });
  }
  return {
    kill: (signal) => child.kill(signal),
    ended: once(child, 'close').then(() => ({ status: child.exitCode, output })),
  };
}

async function killAt(deployment: Deployment, { victim, step, delay }: Kill, file: string) {
  const reached = Promise.withResolvers<void>();
  const running = runLearn(deployment, file, (output) => {
    if (SAID[step].test(output)) reached.resolve();
  });
  await Promise.race([reached.promise, running.ended]);
  if (delay > 0) await sleep(delay);
  switch (victim) {
    case 'command':
      running.kill('SIGKILL');
      break;
    case 'interrupt':
      running.kill('SIGINT');
      break;
    case 'server':
      await deployment.server.kill();
      deployment.server = await startServer({ ...deployment.env, PORT: String(deployment.port) });
      break;
    case 'store':
      await deployment.redis?.kill();
      await deployment.redis?.start();
  }
  return await running.ended;
}

async function untilAnswered(deployment: Deployment): Promise<Answer> {
  for (const end = performance.now() + LONGEST_MS; ; ) {
    try {
      return await ask(deployment, TEXTS[0] as string);
    } catch (error) {
      if (performance.now() > end) throw error;
      await sleep(50);
    }
  }
}

/** One decision. Rejects with an error that says what there was instead. */
async function ask({ port, headers }: Deployment, input: string): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/decisions`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', input, instruction: 'which', catalog: 'letters' }),
    signal: AbortSignal.timeout(LONGEST_MS),
  })
    .then(async (answered) => ({ status: answered.status, headers: answered.headers, text: await answered.text() }))
    .catch(() => undefined);
  if (response === undefined) throw new Error('no answer');
  const { output, error } = JSON.parse(response.text) as { output?: object; error?: { code: string } };
  if (output === undefined) throw new Error(`${response.status} ${error?.code}`);
  return { digest: response.headers.get('x-umpire-learned') ?? '', probabilities: JSON.stringify(output) };
}
