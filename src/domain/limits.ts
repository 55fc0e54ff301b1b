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
import type { Caller } from './callers.ts';
import { DomainError } from './errors.ts';
import type { Allowance, LimitSettings } from './limit-settings.ts';
import { createLocalLimits, type LimitClocks } from './local-limits.ts';

/** What a request within its limits was granted. */
export interface Admission {
  /** To be called once the request's work has ended, however it ended. Calling it again does nothing. */
  release(): void;
}

/** What a request asks for: decisions count against all limits, catalog calls against the rate alone. */
export type LimitedWork = 'decision' | 'catalog';

/** Judges requests by the limits of their callers. */
export interface Limits {
  /**
   * Grants a request or throws RATE_LIMIT_EXCEEDED, CONCURRENCY_LIMIT_EXCEEDED or QUOTA_EXCEEDED, with `retryAfter`. At
   * once (no promise) where no shared store is asked.
   */
  admit(caller: Caller, work: LimitedWork, budget: StoreBudget): Admission | Promise<Admission>;
}

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

const FREE: Admission = { release() {} };

/** Limits as the settings state them. */
export function createLimits(options: LimitOptions): Limits {
  const { store, settings, log, clock = () => performance.now() } = options;
  const local = createLocalLimits(options);
  const slowest = createSlowest(clock);
  // A lease's name must be unique over all replicas.
  const origin = crypto.randomUUID();
  let leases = 0;
  const trouble = createTrouble(log, clock);

  return {
    admit(caller, work, budget) {
      const demand = demandOf(caller, work);
      if (demand === undefined) return FREE;
      if (store === undefined) return judge(demand, local.take(demand), local);
      return admitShared(store, demand, budget);
    },
  };

  function demandOf(caller: Caller, work: LimitedWork): LimitDemand | undefined {
    const standard: Allowance = settings[caller.kind];
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
        : { concurrency: { limit: concurrency, lease: `${origin}:${leases++}`, leaseMs: LEASE_MS } }),
    };
  }

  async function admitShared(shared: LimitStore, demand: LimitDemand, budget: StoreBudget): Promise<Admission> {
    const share: StoreBudget = { remaining: Math.min(budget.remaining, SHARE_MS), calls: budget.calls };
    const before = share.remaining;
    let verdict: LimitVerdict;
    try {
      verdict = await shared.take(demand, share);
      trouble.over();
    } catch (error) {
      if (!(error instanceof StoreUnavailable || error instanceof StoreCorrupt)) throw error;
      trouble.here(error);
      return judge(demand, local.take(demand), local);
    } finally {
      budget.remaining -= before - share.remaining;
    }
    return judge(demand, verdict, shared);
  }

  function judge(demand: LimitDemand, verdict: LimitVerdict, counter: Pick<LimitStore, 'release'>): Admission {
    if (verdict.kind === 'refused') throw refusal(demand, verdict, slowest.read());
    const { concurrency, subject } = demand;
    if (concurrency === undefined) return FREE;
    const started = clock();
    let held = true;
    return {
      release() {
        if (!held) return;
        held = false;
        slowest.note(clock() - started);
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
function createTrouble(log: StoreLog, clock: () => number): { here(error: unknown): void; over(): void } {
  let last: number | undefined;
  return {
    here(error) {
      if (last === undefined) {
        log.warn({ err: error }, 'the shared store of limits is away: this process counts limits for itself meanwhile');
      }
      last = clock();
    },
    over() {
      if (last === undefined || clock() - last < QUIET_MS) return;
      last = undefined;
      log.info({}, 'the shared store counts limits again');
    },
  };
}

/** The greatest of the durations that were noted in the last one to two minutes. */
export interface Slowest {
  note(milliseconds: number): void;
  /** Milliseconds; 0 if nothing was noted in that time. */
  read(): number;
}

/** The length of a window. */
const WINDOW_MS = 60_000;

/**
 * Keeps the maximum of two windows, so that a value is forgotten after one to two minutes without a list of them all.
 * `clock` in milliseconds.
 */
export function createSlowest(clock: () => number): Slowest {
  let window = 0;
  let current = 0;
  let previous = 0;
  const turn = (): void => {
    const now = Math.floor(clock() / WINDOW_MS);
    if (now === window) return;
    previous = now === window + 1 ? current : 0;
    current = 0;
    window = now;
  };
  return {
    note(milliseconds) {
      turn();
      current = Math.max(current, milliseconds);
    },
    read() {
      turn();
      return Math.max(current, previous);
    },
  };
}
