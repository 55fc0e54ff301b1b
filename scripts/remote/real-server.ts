/** A model server that a script installed: a process that can be started, stopped and killed again and again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { until } from './umpire.ts';

/** How a server is started. */
export interface ServerCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The URL that is asked until it answers 200. */
  readonly health: string;
}

/** The states of a server: no process, or one that was started with a key. */
type State =
  | { readonly kind: 'apart' }
  | { readonly kind: 'started'; readonly child: ChildProcess; readonly key: string };

/** Characters that are kept of what a server writes: its last ones. */
const KEPT = 8000;

/** A server that can be started again and again. */
export class RealServer {
  readonly #command: (key: string) => ServerCommand;
  #state: State = { kind: 'apart' };
  #said = '';

  /** `command`: how the server is started with a key. */
  constructor(command: (key: string) => ServerCommand) {
    this.#command = command;
  }

  /**
   * Starts the server, which then wants `key` as its token. What it writes is printed only if it ends with an error.
   */
  start(key = ''): void {
    const { program, args, env = {} } = this.#command(key);
    const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#said = '';
    const note = (text: Buffer): void => {
      this.#said = (this.#said + text.toString()).slice(-KEPT);
    };
    child.stdout.on('data', note);
    child.stderr.on('data', note);
    child.once('exit', (code) => {
      if (code !== null && code !== 0) process.stderr.write(`${program} ended with ${code}:\n${this.#said}\n`);
    });
    this.#state = { kind: 'started', child, key };
  }

  /** Waits until the server is healthy. Resolves to the seconds that it took; rejects if it ends instead. */
  async ready(): Promise<number> {
    const { health } = this.#command('');
    return await until(async () => {
      if (this.#state.kind === 'apart' || this.#state.child.exitCode !== null) throw new Error('the server ended');
      const headers = { authorization: `Bearer ${this.#state.key}` };
      return await fetch(health, { headers }).then(
        (response) => response.ok,
        () => false,
      );
    });
  }

  /** What the server wrote last. */
  said(): string {
    return this.#said;
  }

  /** Writes a line to the server's standard input. */
  tell(line: string): void {
    if (this.#state.kind === 'started') this.#state.child.stdin?.write(`${line}\n`);
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    if (this.#state.kind === 'started') this.#state.child.kill(signal);
  }

  /** Kills the server, and waits until it has ended. */
  async kill(): Promise<void> {
    if (this.#state.kind === 'apart') return;
    const { child } = this.#state;
    this.#state = { kind: 'apart' };
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGCONT');
    child.kill('SIGKILL');
    await gone;
  }
}

/** Does work while a server runs, and then kills the server. */
export async function withServer(server: RealServer, key: string, work: () => Promise<void>): Promise<void> {
  server.start(key);
  try {
    await work();
  } finally {
    await server.kill();
  }
}
