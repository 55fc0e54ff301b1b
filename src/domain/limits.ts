/**
 * Rate, concurrency and quota, judged before any work: per key for keyed callers, per address for anonymous ones. They
 * are counted across replicas by the shared store, or by this process where there is none or while it is unavailable,
 * which is logged once each time.
 */
import { retryAfterOf } from '../engine/errors.ts';
import type { StoreBudget } from '../stores/budget.ts';
import {
  type LimitDemand,
  type LimitStore,
  type LimitVerdict,
  StoreCorrupt,
  type StoreLog,
  StoreUnavailable,
} from '../stores/stores.ts';
import type { Caller } from './authenticate.ts';
import type { Lease } from './call.ts';
import { DomainError } from './errors.ts';
import type { Allowance, LimitSettings } from './limit-settings.ts';
import { type LimitClocks, LocalLimits } from './local-limits.ts';

/** What a request asks for: decisions count against all limits, catalog calls against the rate alone. */
export type LimitedWork = 'decision' | 'catalog';

/** What the limits are, and what counts them. */
export interface LimitOptions extends LimitClocks {
  readonly settings: LimitSettings;
  /** Counts for all replicas; absent: this process counts for itself. */
  readonly store?: LimitStore | undefined;
  readonly log: StoreLog;
}

/** Leases end a little after the longest timeout, 30 s, so that those of a replica that died are not held for ever. */
const LEASE_MS = 35_000;
/** Milliseconds of a request's store budget for limits: they fail open, so work that needs the store has the rest. */
const SHARE_MS = 100;

/** Milliseconds without a failure after which the store counts as recovered. */
const QUIET_MS = 5_000;

const FREE: Lease = { release() {} };

/** Judges requests by the limits of their callers. */
export class Limits {
  readonly #settings: LimitSettings;
  readonly #store: LimitStore | undefined;
  readonly #local: LocalLimits;
  readonly #clock: () => number;
  readonly #slowest: Slowest;
  readonly #trouble: Trouble;
  /** A lease's name must be unique over all replicas. */
  readonly #origin = crypto.randomUUID();
  #leases = 0;

  constructor(options: LimitOptions) {
    const { store, settings, log, clock = () => performance.now() } = options;
    this.#settings = settings;
    this.#store = store;
    this.#local = new LocalLimits(options);
    this.#clock = clock;
    this.#slowest = new Slowest(clock);
    this.#trouble = new Trouble(log, clock);
  }

  /**
   * Grants a request or throws RATE_LIMIT_EXCEEDED, CONCURRENCY_LIMIT_EXCEEDED or QUOTA_EXCEEDED, with `retryAfter`. At
   * once (no promise) where no shared store is asked.
   */
  grant(caller: Caller, work: LimitedWork, budget: StoreBudget): Lease | Promise<Lease> {
    const demand = this.#demandOf(caller, work);
    if (demand === undefined) return FREE;
    if (this.#store === undefined) return this.#judge(demand, this.#local.take(demand), this.#local);
    return this.#grantShared(this.#store, demand, budget);
  }

  #demandOf(caller: Caller, work: LimitedWork): LimitDemand | undefined {
    const standard: Allowance = this.#settings[caller.kind];
    const own = caller.kind === 'key' ? caller.limits : {};
    const rate = own.rate ?? standard.rate;
    const concurrency = work === 'decision' ? (own.concurrency ?? standard.concurrency) : 'off';
    const quota = work === 'decision' ? (own.quota ?? standard.quota) : 'off';
    if (rate === 'off' && concurrency === 'off' && quota === 'off') return undefined;
    return {
      subject: caller.kind === 'key' ? `key:${caller.keyId}` : `address:${caller.address}`,
      ...(rate === 'off' ? {} : { rate }),
      ...(quota === 'off' ? {} : { quota }),
      ...(concurrency === 'off'
        ? {}
        : { concurrency: { limit: concurrency, lease: `${this.#origin}:${this.#leases++}`, leaseMs: LEASE_MS } }),
    };
  }

  async #grantShared(shared: LimitStore, demand: LimitDemand, budget: StoreBudget): Promise<Lease> {
    const share: StoreBudget = { remaining: Math.min(budget.remaining, SHARE_MS), calls: budget.calls };
    const before = share.remaining;
    let verdict: LimitVerdict;
    try {
      verdict = await shared.take(demand, share);
      this.#trouble.over();
    } catch (error) {
      if (!(error instanceof StoreUnavailable || error instanceof StoreCorrupt)) throw error;
      this.#trouble.here(error);
      return this.#judge(demand, this.#local.take(demand), this.#local);
    } finally {
      budget.remaining -= before - share.remaining;
    }
    return this.#judge(demand, verdict, shared);
  }

  #judge(demand: LimitDemand, verdict: LimitVerdict, counter: Pick<LimitStore, 'release'>): Lease {
    if (verdict.kind === 'refused') throw refusal(demand, verdict, this.#slowest.read());
    const { concurrency, subject } = demand;
    if (concurrency === undefined) return FREE;
    const started = this.#clock();
    let held = true;
    return {
      release: () => {
        if (!held) return;
        held = false;
        this.#slowest.note(this.#clock() - started);
        counter.release(subject, concurrency.lease);
      },
    };
  }
}

const writtenRate = (rate: LimitDemand['rate']): string =>
  rate === undefined ? '' : `${Number(rate.perSecond.toFixed(3))}/s, burst ${rate.burst}`;

/** The error of a verdict. `slowestMs`: how long the slowest recent decision took. */
function refusal(
  { subject, rate, quota, concurrency }: LimitDemand,
  verdict: Exclude<LimitVerdict, { kind: 'admitted' }>,
  slowestMs: number,
): DomainError {
  const keyed = subject.startsWith('key:');
  const allowed = (count: unknown, limit: string): string =>
    keyed
      ? `${count} for this key (its own, or UMPIRE_${limit}_KEY)`
      : `${count} for an address (UMPIRE_${limit}_ANONYMOUS)`;
  switch (verdict.by) {
    case 'rate':
      return new DomainError('RATE_LIMIT_EXCEEDED', `too many requests: ${allowed(writtenRate(rate), 'RATE')}`, {
        retryAfter: retryAfterOf(verdict.waitMs),
      });
    case 'quota':
      return new DomainError('QUOTA_EXCEEDED', `the day's decisions are used up: ${allowed(quota, 'QUOTA')}`, {
        retryAfter: retryAfterOf(verdict.waitMs),
      });
    case 'concurrency': {
      const message = `too many decisions in progress: ${allowed(concurrency?.limit, 'CONCURRENCY')}`;
      // By then the oldest lease has lasted as long as the slowest recent decision, so its place should be free.
      const retryAfter = retryAfterOf(Math.min(slowestMs, LEASE_MS) - verdict.oldestMs);
      return new DomainError('CONCURRENCY_LIMIT_EXCEEDED', message, { retryAfter });
    }
  }
}

/**
 * Logs when the shared store fails and when it has recovered, but not for every request: a part of a cluster may be
 * unavailable for long.
 */
class Trouble {
  readonly #log: StoreLog;
  readonly #clock: () => number;
  #last: number | undefined;

  constructor(log: StoreLog, clock: () => number) {
    this.#log = log;
    this.#clock = clock;
  }

  here(error: unknown): void {
    if (this.#last === undefined) {
      const message = 'the shared store of limits is away: this process counts limits for itself meanwhile';
      this.#log.warn({ err: error }, message);
    }
    this.#last = this.#clock();
  }

  over(): void {
    if (this.#last === undefined || this.#clock() - this.#last < QUIET_MS) return;
    this.#last = undefined;
    this.#log.info({}, 'the shared store counts limits again');
  }
}

/** The length of a window, milliseconds. */
const WINDOW_MS = 60_000;

/**
 * The greatest of the durations that were noted in the last one to two minutes: the maximum of two windows, so that a
 * value is forgotten without a list of them all.
 */
export class Slowest {
  readonly #clock: () => number;
  #window = 0;
  #current = 0;
  #previous = 0;

  /** `clock` in milliseconds. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  note(milliseconds: number): void {
    this.#turn();
    this.#current = Math.max(this.#current, milliseconds);
  }

  /** Milliseconds; 0 if nothing was noted in that time. */
  read(): number {
    this.#turn();
    return Math.max(this.#current, this.#previous);
  }

  #turn(): void {
    const now = Math.floor(this.#clock() / WINDOW_MS);
    if (now === this.#window) return;
    this.#previous = now === this.#window + 1 ? this.#current : 0;
    this.#current = 0;
    this.#window = now;
  }
}
