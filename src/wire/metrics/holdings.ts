/** What an operator sees of the bounds of the port: what clients hold, what was refused or given up for it, and the faults that nothing caught. */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { HoldingState } from '../holdings/holdings.ts';

/** Where these metrics are read from. */
export interface HoldingSources {
  holdings(): HoldingState;
  /** Faults that nothing caught, by their reason. */
  readonly faults: ReadonlyMap<string, number>;
}

/** Adds what is read when somebody asks. */
export function addHoldingMetrics(registry: Registry, { holdings, faults }: HoldingSources): void {
  const registers = [registry];
  const gauge = (name: string, help: string, read: (state: HoldingState) => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read(holdings()));
      },
    });
  };
  const total = (name: string, help: string, read: (state: HoldingState) => number): void => {
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read(holdings()));
      },
    });
  };
  const totals = (
    name: string,
    help: string,
    read: (state: HoldingState) => Iterable<readonly [reason: string, count: number]>,
  ): void => {
    new Counter({
      name,
      help,
      labelNames: ['reason'],
      registers,
      collect() {
        this.reset();
        for (const [reason, count] of read(holdings())) this.inc({ reason }, count);
      },
    });
  };
  gauge('umpire_connections', 'Connections that are open.', ({ connections }) => connections);
  gauge(
    'umpire_requests_open',
    'Requests that have begun and whose response has not left.',
    ({ requests }) => requests,
  );
  gauge('umpire_watches', 'Streams of Health.Watch that are open.', ({ watches }) => watches);
  gauge('umpire_unread_bytes', 'Bytes of responses that wait to be read.', ({ unread }) => unread);
  gauge('umpire_client_addresses', 'Addresses that something is counted for.', ({ addresses }) => addresses);
  totals(
    'umpire_connections_refused_total',
    'New connections that were closed: address (it had too many), rate (too many a second), full (none was idle).',
    ({ tally }) => Object.entries(tally.refused),
  );
  total(
    'umpire_connections_evicted_total',
    'Idle connections that were closed to make room for new ones.',
    ({ tally }) => tally.evicted,
  );
  totals(
    'umpire_given_up_total',
    'Requests that were ended: unread (nobody read the response), unfinished (the request never ended), displaced (a newer one needed the place).',
    ({ tally }) => Object.entries(tally.givenUp),
  );
  totals('umpire_watches_ended_total', 'Streams of Health.Watch that were ended: age, displaced.', ({ tally }) =>
    Object.entries(tally.watchesEnded),
  );
  total('umpire_resets_total', 'Requests that their callers took back.', ({ tally }) => tally.resets);
  total('umpire_blocks_total', 'Times that an address was not served for a while.', ({ tally }) => tally.blocked);
  totals('umpire_faults_total', 'Faults that nothing caught, by their code or kind. The process drains and ends.', () =>
    faults.entries(),
  );
}
