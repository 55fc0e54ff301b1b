/**
 * The service under test: `src/main.ts` in a process of its own, with its log in a file and without limits on callers.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childrenOf } from './cpu.ts';

/** A running service. */
export interface Service {
  readonly port: number;
  readonly pid: number;
  readonly process: ChildProcess;
  /** The pids of its engine processes. */
  engines(): readonly number[];
  /** The lines of its log so far. */
  log(): readonly LogLine[];
  stop(): Promise<void>;
}

/** What benchmarks read of a line of the log. */
export interface LogLine {
  readonly time: string;
  readonly reason?: string;
  /** Milliseconds from the first header to the end of the answer, on the service's own clock. */
  readonly durationMs?: number;
  /** Milliseconds of a decision's stages in the engine. */
  readonly timings?: { readonly queue: number; readonly tokenize: number; readonly infer: number };
}

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

/**
 * Starts the service and waits until it is ready. `settings` are environment variables, `flags` options of Node itself.
 */
export async function startService(
  settings: Readonly<Record<string, string>> = {},
  flags: readonly string[] = [],
): Promise<Service> {
  const port = await freePort();
  const data = mkdtempSync(join(tmpdir(), 'umpire-bench-'));
  const log = join(data, 'log');
  const child = spawn(process.execPath, [...flags, main], {
    stdio: ['ignore', openSync(log, 'w'), 'inherit', 'ipc'],
    env: {
      ...process.env,
      PORT: String(port),
      HOST: '127.0.0.1',
      UMPIRE_DATA_DIR: data,
      UMPIRE_RATE_ANONYMOUS: 'off',
      UMPIRE_BODIES_ANONYMOUS: 'off',
      UMPIRE_BODIES_KEY: 'off',
      UMPIRE_BODIES_ALL: 'off',
      UMPIRE_CONCURRENCY_ANONYMOUS: 'off',
      UMPIRE_REQUEST_RATE: 'off',
      UMPIRE_DRAIN_DELAY: '0',
      ...settings,
    },
  });
  const pid = child.pid ?? 0;
  const ended = once(child, 'exit');
  while (!(await isReady(port))) {
    if (child.exitCode !== null) throw new Error(`the service ended with ${child.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    port,
    pid,
    process: child,
    engines: () => childrenOf(pid),
    log: () =>
      readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => line.endsWith('}'))
        .map((line) => JSON.parse(line)),
    async stop() {
      child.kill('SIGTERM');
      await ended;
      rmSync(data, { recursive: true, force: true });
    },
  };
}

async function isReady(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/health/ready`)).ok;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
