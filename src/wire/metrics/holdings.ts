/**
 * What an operator sees of the bounds of the port: what clients hold, what was refused or given up for it, and the
 * faults that nothing caught.
 */
import type { Registry } from 'prom-client';
import type { HoldingState } from '../holdings/holdings.ts';
import { type Reading, readingsIn } from './readings.ts';

/** Where these metrics are read from. */
export interface HoldingSources {
  holdings(): HoldingState;
  /** Counts of faults that nothing caught, by reason. */
  readonly faults: ReadonlyMap<string, number>;
}

/** Adds metrics whose values are read at each scrape. */
export function addHoldingMetrics(registry: Registry, { holdings, faults }: HoldingSources): void {
  const { gauge, total, totals } = readingsIn(registry);
  const byReason = (counts: Iterable<readonly [reason: string, count: number]>): readonly Reading[] =>
    Array.from(counts, ([reason, count]) => [{ reason }, count]);
  gauge('umpire_connections', 'Connections that are open.', () => holdings().connections);
  gauge('umpire_requests_open', 'Requests that have begun and whose response has not left.', () => holdings().requests);
  gauge('umpire_watches', 'Streams of Health.Watch that are open.', () => holdings().watches);
  gauge('umpire_unread_bytes', 'Bytes of responses that wait to be read.', () => holdings().unread);
  gauge('umpire_client_addresses', 'Addresses that something is counted for.', () => holdings().addresses);
  totals(
    'umpire_connections_refused_total',
    'New connections that were closed: address (it had too many), rate (too many a second), full (none was idle).',
    ['reason'],
    () => byReason(Object.entries(holdings().tally.refused)),
  );
  total(
    'umpire_connections_evicted_total',
    'Idle connections that were closed to make room for new ones.',
    () => holdings().tally.evicted,
  );
  totals(
    'umpire_given_up_total',
    'Requests that were ended: unread (nobody read the response), unfinished (the request never ended), displaced (a newer one needed the place).',
    ['reason'],
    () => byReason(Object.entries(holdings().tally.givenUp)),
  );
  totals('umpire_watches_ended_total', 'Streams of Health.Watch that were ended: age, displaced.', ['reason'], () =>
    byReason(Object.entries(holdings().tally.watchesEnded)),
  );
  total('umpire_resets_total', 'Requests that their callers took back.', () => holdings().tally.resets);
  total('umpire_blocks_total', 'Times that an address was not served for a while.', () => holdings().tally.blocked);
  totals(
    'umpire_faults_total',
    'Faults that nothing caught, by their code or kind. The process drains and ends.',
    ['reason'],
    () => byReason(faults),
  );
}
