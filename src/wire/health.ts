/**
 * One state for the probes over HTTP and `grpc.health.v1.Health`: live while the process runs, ready while a
 * decision could be made.
 */
import { DomainError } from '../domain/errors.ts';

/** Whether this process lives, and whether it is ready, for probes and watchers of any protocol. */
export interface Health {
  readonly draining: boolean;
  /** Whether decisions can be made and the process is not shutting down. */
  readonly ready: boolean;
  /** Why no decision can be made; undefined while `ready`. */
  fault(): DomainError | undefined;
  /** Makes the process unready from now on, and tells watchers. */
  startDraining(): void;
  /** Calls `listener` after each change of `ready` and when draining begins. Returns a function that ends that. */
  watch(listener: () => void): () => void;
  /** Ends the polling and forgets all watchers. */
  close(): void;
}

/** Milliseconds between looks at the engine, for watchers; each probe takes a look of its own. */
const POLL_INTERVAL = 250;

/** Health over the engine's readiness. */
export function createHealth(isReady: () => boolean): Health {
  const listeners = new Set<() => void>();
  let draining = false;
  let seen = false;
  let timer: NodeJS.Timeout | undefined;

  const ready = (): boolean => !draining && isReady();
  const look = (): void => {
    const now = ready();
    if (now === seen) return;
    seen = now;
    for (const listener of [...listeners]) listener();
  };

  return {
    get draining() {
      return draining;
    },
    get ready() {
      return ready();
    },
    fault() {
      if (draining) return new DomainError('DRAINING', 'this process is shutting down', { retryAfter: 1 });
      if (isReady()) return undefined;
      return new DomainError('NOT_READY', 'the models are being loaded, or none can be served', { retryAfter: 1 });
    },
    startDraining() {
      draining = true;
      seen = false;
      for (const listener of [...listeners]) listener();
    },
    watch(listener) {
      if (timer === undefined) {
        seen = ready();
        timer = setInterval(look, POLL_INTERVAL);
        timer.unref();
      }
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
    close() {
      clearInterval(timer);
      timer = undefined;
      listeners.clear();
    },
  };
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
