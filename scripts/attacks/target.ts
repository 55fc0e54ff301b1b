/**
 * The service that is attacked: `src/main.ts` of a checkout in a process of its own, with the default limits, one
 * engine and one model.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Target {
  /** The serving process. */
  readonly pid: number;
  readonly port: number;
  /** The port of metrics and probes. */
  readonly metricsPort: number;
  /** MiB that the serving process keeps in memory; undefined once it has ended. */
  memory(): number | undefined;
  /** Seconds of CPU time that the serving process took so far; undefined once it has ended. */
  cpu(): number | undefined;
  /** The exit status, if it has ended. */
  readonly status: number | null;
  /** One sample of the metrics; 0 where there is no such one. */
  metric(name: string): Promise<number>;
  /** Its log so far. */
  log(): string;
  /** A new key of this owner, made by the operator's command. */
  issueKey(owner: string): Promise<string>;
  /** The operator's command, with more of an environment and an input: its output, and whether it ended with 0. */
  operate(args: readonly string[], more?: Operation): Promise<{ readonly out: string; readonly ok: boolean }>;
  /** Ends it, by force once `patience` is over, milliseconds. */
  stop(patience?: number): Promise<void>;
}

/** What an operator's command has beside its arguments. */
export interface Operation {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** How a service is started. */
export interface Starting {
  /** Whether somebody reads its log; otherwise the pipe fills up. */
  readonly readLog?: boolean;
}

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
// A script that is interrupted takes its services along.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

/** Starts one and waits until it is ready. */
export async function startTarget(
  checkout: string = ROOT,
  settings: Readonly<Record<string, string>> = {},
  { readLog = true }: Starting = {},
): Promise<Target> {
  const folder = mkdtempSync(join(tmpdir(), 'umpire-attack-'));
  mkdirSync(join(folder, 'models'));
  cpSync(join(checkout, 'models/minilm-l6'), join(folder, 'models/minilm-l6'), { recursive: true });
  const [port, metricsPort] = await freePorts();
  const env = {
    PATH: process.env.PATH,
    PORT: String(port),
    HOST: '127.0.0.1',
    UMPIRE_METRICS_PORT: String(metricsPort),
    UMPIRE_ENGINES: '1',
    UMPIRE_DRAIN_DELAY: '0',
    UMPIRE_MODELS_DIR: join(folder, 'models'),
    UMPIRE_DATA_DIR: join(folder, 'data'),
    ...settings,
  };
  const child = spawn(process.execPath, [join(checkout, 'src/main.ts')], { stdio: ['ignore', 'pipe', 'inherit'], env });
  running.add(child);
  const exited = once(child, 'exit').then(() => running.delete(child));
  let log = '';
  if (readLog) {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      // The first lines and the last: in an attack there are many.
      log = log.length > 4_000_000 ? log.slice(-2_000_000) + text : log + text;
    });
  }
  const operate: Target['operate'] = (args, more = {}) =>
    new Promise((resolve) => {
      const command = execFile(
        process.execPath,
        [join(checkout, 'src/cli.ts'), ...args],
        { env: { ...env, ...more.env }, timeout: 60_000 },
        (error, out) => resolve({ out, ok: error === null }),
      );
      command.stdin?.end(more.input);
    });
  const ready = async (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await ready())) {
    if (child.exitCode !== null) throw new Error(`the service ended with ${child.exitCode}:\n${log}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return {
    pid: child.pid as number,
    port,
    metricsPort,
    get status() {
      return child.exitCode;
    },
    memory() {
      try {
        const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
        return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
      } catch {
        return undefined;
      }
    },
    async metric(name) {
      const text = await fetch(`http://127.0.0.1:${metricsPort}/metrics`).then(
        (answer) => answer.text(),
        () => '',
      );
      const line = text.split('\n').find((each) => each.startsWith(`${name} `));
      return line === undefined ? 0 : Number(line.slice(line.lastIndexOf(' ') + 1));
    },
    log: () => log,
    cpu() {
      try {
        // Behind the name in parentheses, which may hold spaces: utime and stime in hundredths of
        // a second (proc_pid_stat(5)).
        const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
        return (Number(fields[11]) + Number(fields[12])) / 100;
      } catch {
        return undefined;
      }
    },
    async issueKey(owner) {
      const { out, ok } = await operate(['keys', 'create', '--owner', owner]);
      if (!ok) throw new Error(`no key was made for ${owner}`);
      // The last line is the key.
      return out.trim().split('\n').at(-1) as string;
    },
    operate,
    async stop(patience = 40_000) {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), patience);
      await exited;
      clearTimeout(timer);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Two ports that nobody listens on. Both are held until both are known: one that is free again may be given out again.
 */
async function freePorts(): Promise<readonly [number, number]> {
  const servers = [createServer(), createServer()] as const;
  await Promise.all(servers.map((server) => once(server.listen(0, '127.0.0.1'), 'listening')));
  const [first, second] = servers.map((server) => (server.address() as { port: number }).port) as [number, number];
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return [first, second];
}
