/** Who sends a request, as far as the domain cares, and as whom the engine knows them. */
import type { CallerTerms, JobTerms } from '../engine/engine.ts';

/** Limits of one caller; `undefined` means the deployment's default for its kind, `'off'` no limit. */
export interface CallerLimits {
  /** Sustained requests a second and the burst above it. */
  readonly rate?: { readonly perSecond: number; readonly burst: number } | 'off';
  /** Decisions in progress at one time. */
  readonly concurrency?: number | 'off';
  /** Decisions a day (UTC). */
  readonly quota?: number | 'off';
}

/** Nobody in particular: known by the client address, IPv4, or the /64 of an IPv6. */
export interface AnonymousCaller {
  readonly kind: 'anonymous';
  readonly address: string;
}

/** The holder of a valid key. Catalogs belong to the owner, limits to the key. */
export interface KeyedCaller {
  readonly kind: 'key';
  readonly owner: string;
  readonly keyId: string;
  readonly address: string;
  readonly limits: CallerLimits;
}

/** Who sends a request. */
export type Caller = AnonymousCaller | KeyedCaller;

/** A caller, and when its answer is worthless on the clock of `performance.now()`. */
interface CalledBy {
  readonly caller: Caller;
  readonly deadline: number;
}

/** How the engine shares its time: by owner, or by address where nobody is known. */
export function callerTerms({ caller, deadline }: CalledBy): CallerTerms {
  return caller.kind === 'key'
    ? { deadline, tenant: caller.owner, keyed: true }
    : { deadline, tenant: caller.address, keyed: false };
}

/** The terms of a job for that caller. */
export function jobTerms(terms: CalledBy & Pick<JobTerms, 'signal'>): JobTerms {
  return { ...callerTerms(terms), signal: terms.signal };
}
