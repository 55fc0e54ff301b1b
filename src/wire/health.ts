/**
 * One state for the probes over HTTP and `grpc.health.v1.Health`: live while the process runs, ready while a
 * decision could be made.
 */
import { DomainError } from '../domain/errors.ts';
import type { Engine } from '../engine/engine.ts';

/** Milliseconds between looks at the engine, for watchers; each probe takes a look of its own. */
const POLL_INTERVAL = 250;

/** Whether this process lives, and whether it is ready, for probes and watchers of any protocol. */
export class Health {
  readonly #engine: Pick<Engine, 'ready'>;
  readonly #listeners = new Set<() => void>();
  #draining = false;
  #seen = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(engine: Pick<Engine, 'ready'>) {
    this.#engine = engine;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Whether decisions can be made and the process is not shutting down. */
  get ready(): boolean {
    return !this.#draining && this.#engine.ready();
  }

  /** Why no decision can be made; undefined while `ready`. */
  fault(): DomainError | undefined {
    if (this.#draining) return new DomainError('DRAINING', 'this process is shutting down', { retryAfter: 1 });
    if (this.#engine.ready()) return undefined;
    return new DomainError('NOT_READY', 'the models are being loaded, or none can be served', { retryAfter: 1 });
  }

  /** Makes the process unready from now on, and tells watchers. */
  startDraining(): void {
    this.#draining = true;
    this.#seen = false;
    for (const listener of [...this.#listeners]) listener();
  }

  /** Calls `listener` after each change of `ready` and when draining begins. Returns a function that ends that. */
  watch(listener: () => void): () => void {
    if (this.#timer === undefined) {
      this.#seen = this.ready;
      this.#timer = setInterval(() => this.#look(), POLL_INTERVAL);
      this.#timer.unref();
    }
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#stop();
    };
  }

  /** Ends the polling and forgets all watchers. */
  close(): void {
    this.#stop();
    this.#listeners.clear();
  }

  #look(): void {
    const now = this.ready;
    if (now === this.#seen) return;
    this.#seen = now;
    for (const listener of [...this.#listeners]) listener();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

// The probes over HTTP, at the service's port and the metrics port: `/health/live` and `/health/ready`.

/** What a probe finds: a body for status 200, or a fault. */
export interface Probe {
  readonly body: string;
  readonly fault: DomainError | undefined;
}

const LIVE: Probe = { body: '{"status":"live"}', fault: undefined };
const READY: Probe = { body: '{"status":"ready"}', fault: undefined };

/** The answer at a path; undefined where it is not one of health. */
export function probe(health: Health, path: string): Probe | undefined {
  if (path === '/health/live') return LIVE;
  if (path !== '/health/ready') return undefined;
  const fault = health.fault();
  return fault === undefined ? READY : { body: '', fault };
}
