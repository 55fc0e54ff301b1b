/** Whole servers as processes of their own, as an operator starts them: src/main.ts with an environment. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { NO_LIMITS } from '../../src/mock/start-mock.ts';
import { CHILD_ENV } from './child-env.ts';
import { send } from './http.ts';
import { outputOf } from './output.ts';
import { until } from './redis.ts';

export interface ServerProcess {
  readonly port: number;
  readonly pid: number;
  /** Everything that it wrote so far, to both outputs. */
  output(): string;
  /** kill -9. */
  kill(): Promise<void>;
  /** SIGTERM; the exit status. */
  stop(): Promise<number | null>;
  /** The exit status, once it has ended by itself. */
  ended(): Promise<number | null>;
}

const ENTRY = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const children = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/**
 * Starts one with one engine and, unless `env` says otherwise, without limits. Resolves once all its models are ready.
 * `within` is what runs it, such as `ip netns exec NAME`; `flags` are Node's own.
 */
export async function startServer(
  env: Record<string, string>,
  within: readonly string[] = [],
  flags: readonly string[] = [],
): Promise<ServerProcess> {
  const [command = process.execPath, ...prefix] = [...within, process.execPath];
  const child = spawn(command, [...prefix, ...flags, ENTRY], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...CHILD_ENV,
      PORT: '0',
      HOST: '127.0.0.1',
      UMPIRE_ENGINES: '1',
      // While its one engine loads a second model it decides nothing.
      UMPIRE_LISTEN_WHEN: 'ready',
      UMPIRE_DRAIN_DELAY: '0',
      ...NO_LIMITS,
      // A read of a catalog sets aside what the largest one takes, and tests read many at once from one address.
      UMPIRE_UNREAD_PER_ADDRESS: '256',
      ...env,
    },
  });
  children.add(child);
  const exited = once(child, 'exit').then(() => children.delete(child));
  const output = outputOf(child.stdout, child.stderr);
  const portOf = (): number => Number(/"port":(\d+)/.exec(output())?.[1] ?? 0);
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`the server did not start:\n${output()}`);
    return portOf() > 0 && (await send(portOf(), { host: env.HOST, path: '/health/ready' })).status === 200;
  }, 90_000).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  return {
    port: portOf(),
    pid: child.pid ?? 0,
    output,
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    async ended() {
      await exited;
      return child.exitCode;
    },
    async stop() {
      child.kill('SIGTERM');
      await exited;
      return child.exitCode;
    },
  };
}
