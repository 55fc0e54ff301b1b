/** The probes of health over HTTP, at the service's port and the metrics port: `/health/live` and `/health/ready`. */
import type { DomainError } from '../domain/errors.ts';
import type { Health } from './health.ts';

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
