/**
 * Puts a real server into trouble, and prints what callers saw of it: what they got, how soon, and how soon the model
 * was served again.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RealServer } from './real-server.ts';
import { type Asked, complain, pause, say, type Umpire, until } from './umpire.ts';

/** The service, and the server that is put into trouble. */
export interface Scene {
  readonly umpire: Umpire;
  readonly server: RealServer;
  /** The model that the server scores; `asked` is a decision with it. */
  readonly model: string;
  readonly asked: Asked;
  /** The key that the server wants and the package has. */
  readonly key: string;
}

/** Milliseconds that a server is left in trouble. */
const TROUBLE = 4000;
/** Milliseconds that a server is stopped at a time, to slow it. */
const STOPPED = 400;
/** The local model, whose callers must notice nothing. */
const LOCAL = 'minilm-l6';
/** Callers of each model. */
const CALLERS = 2;

/** What callers of both models saw: milliseconds of each answer, of the remote model by its outcome. */
interface Seen {
  readonly remote: ReadonlyMap<string, readonly number[]>;
  readonly local: readonly number[];
}

/** Has callers ask both models, at the same time, until the returned function is called. */
function watch({ umpire, model, asked }: Scene): () => Promise<Seen> {
  const remote = new Map<string, number[]>();
  const local: number[] = [];
  let stopped = false;
  const repeat = async (work: () => Promise<void>): Promise<void> => {
    while (!stopped) {
      await work();
      await pause(20);
    }
  };
  const askRemote = async (): Promise<void> => {
    const { outcome, took } = await umpire.decide(model, asked);
    remote.set(outcome, [...(remote.get(outcome) ?? []), took]);
    if (!/^(200|503 )/.test(outcome)) complain(`a caller got ${outcome}`);
  };
  const askLocal = async (): Promise<void> => {
    const { outcome, took } = await umpire.decide(LOCAL, asked);
    local.push(took);
    if (outcome !== '200') complain(`a caller of the local model got ${outcome}`);
  };
  const callers = Array.from({ length: CALLERS }, () => [repeat(askRemote), repeat(askLocal)]).flat();
  return async () => {
    stopped = true;
    await Promise.all(callers);
    return { remote, local };
  };
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

function told({ remote, local }: Seen): string {
  const outcomes = [...remote].map(([outcome, times]) => {
    const [middle, slowest] = [quantile(times, 0.5), Math.max(...times)].map((time) => time.toFixed(0));
    return `${times.length} × ${outcome} (median ${middle} ms, slowest ${slowest} ms)`;
  });
  return `callers got ${outcomes.join(', ')}; ${localTold(local)}`;
}

function localTold(local: readonly number[]): string {
  const [p50, p99] = [0.5, 0.99].map((share) => quantile(local, share).toFixed(0));
  return `the local model's ${local.length} decisions: p50 ${p50} ms, p99 ${p99} ms`;
}

const isReady = async ({ umpire, model }: Scene): Promise<boolean> => (await umpire.statusOf(model)) === 'ready';
const isGone = async (scene: Scene): Promise<boolean> => !(await isReady(scene));

/** Prints what callers see while nothing is wrong, to compare with. */
export async function calm(scene: Scene): Promise<void> {
  const seen = watch(scene);
  await pause(TROUBLE);
  say(`calm: ${told(await seen())}`);
}

/** Kills the server, and starts it again. */
export async function killed(scene: Scene): Promise<void> {
  const seen = watch(scene);
  await pause(1000);
  await scene.server.kill();
  const gone = await until(() => isGone(scene));
  await pause(TROUBLE);
  const during = await seen();
  scene.server.start(scene.key);
  const started = await scene.server.ready();
  const back = await until(() => isReady(scene));
  say(
    `killed: unavailable after ${gone.toFixed(2)} s; ready ${back.toFixed(2)} s after the server was, ` +
      `which took ${started.toFixed(1)} s to start; ${told(during)}`,
  );
}

/** Freezes the server, and lets it go on. */
export async function frozen(scene: Scene): Promise<void> {
  const seen = watch(scene);
  await pause(1000);
  scene.server.signal('SIGSTOP');
  const gone = await until(() => isGone(scene));
  await pause(TROUBLE);
  scene.server.signal('SIGCONT');
  const back = await until(() => isReady(scene));
  say(
    `frozen: unavailable after ${gone.toFixed(2)} s; ready ${back.toFixed(2)} s after it went on; ${told(await seen())}`,
  );
}

/** Slows the server: it is stopped again and again. */
export async function slowed(scene: Scene): Promise<void> {
  const { server, umpire } = scene;
  const seen = watch(scene);
  await pause(1000);
  for (const end = performance.now() + 2 * TROUBLE; performance.now() < end; ) {
    server.signal('SIGSTOP');
    await pause(STOPPED);
    server.signal('SIGCONT');
    await pause(STOPPED / 4);
  }
  const during = await seen();
  const back = await until(async () => (await umpire.decide(scene.model, scene.asked)).outcome === '200');
  say(
    `slowed, at work ${STOPPED / 4} ms of every ${(5 * STOPPED) / 4} ms for ${(2 * TROUBLE) / 1000} s: ` +
      `decides ${back.toFixed(2)} s later; ${told(during)}`,
  );
}

/** Starts the server with another key, and then gives the package that key, in `file` of its `folder`. */
export async function wrongKey(scene: Scene, folder: string, file: string): Promise<void> {
  const other = `${scene.key}-other`;
  await scene.server.kill();
  scene.server.start(other);
  await scene.server.ready();
  const logged = scene.umpire.log().length;
  const said = await until(() => /token was refused/.test(scene.umpire.log().slice(logged)));
  const got = await scene.umpire.decide(scene.model, scene.asked);
  await writeFile(join(folder, file), other);
  const back = await until(() => isReady(scene));
  say(
    `wrong key: the log says that the token was refused ${said.toFixed(2)} s after the server was back with another key; ` +
      `a caller got ${got.outcome} (${got.took.toFixed(0)} ms, Retry-After ${got.retryAfter}); ` +
      `ready ${back.toFixed(2)} s after the file had the right one`,
  );
  if (scene.umpire.log().includes(scene.key)) complain('a key is in the log');
}
