/**
 * The service that is attacked: `src/main.ts` of a checkout in a process of its own, with the default limits, one
 * engine process and one model.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** A running service that is attacked. */
export interface Target {
  /** The pid of the serving process. */
  readonly pid: number;
  readonly port: number;
  /** Where HTTP/2 is spoken, if that is another port: nginx 1.22 speaks one of both on a port without TLS. */
  readonly http2Port?: number;
  /** The port of metrics and probes. */
  readonly metricsPort: number;
  /** Resident MiB of the serving process; undefined once it has ended. */
  memory(): number | undefined;
  /** The exit status, if it has ended. */
  readonly status: number | null;
  /** One sample of the metrics; 0 if it does not exist. */
  metric(name: string): Promise<number>;
  /** The service's log so far. */
  log(): string;
  /** Creates a key of this owner with the operator's command. */
  issueKey(owner: string): Promise<string>;
  /** Ends the service, by force after 40 seconds. */
  stop(): Promise<void>;
}

/** The folder of this checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
// An interrupted script ends its services, by the handler of 'exit'.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

/** Starts a service and waits until it is ready. */
export async function startTarget(
  checkout: string = ROOT,
  settings: Readonly<Record<string, string>> = {},
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
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    // Of a long log only the end is kept: an attack can cause very many lines.
    log = log.length > 4_000_000 ? log.slice(-2_000_000) + text : log + text;
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
    async issueKey(owner) {
      const command = [join(checkout, 'src/cli.ts'), 'keys', 'create', '--owner', owner];
      const { stdout } = await promisify(execFile)(process.execPath, command, { env, timeout: 60_000 });
      // The key is the last line of the output.
      return stdout.trim().split('\n').at(-1) as string;
    },
    async stop() {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 40_000);
      await exited;
      clearTimeout(timer);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Two free ports. Both are held until both are known, since the system may give out a released port again.
 */
async function freePorts(): Promise<readonly [number, number]> {
  const servers = [createServer(), createServer()] as const;
  await Promise.all(servers.map((server) => once(server.listen(0, '127.0.0.1'), 'listening')));
  const [first, second] = servers.map((server) => (server.address() as { port: number }).port) as [number, number];
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return [first, second];
}
