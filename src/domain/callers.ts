/** Who sends a request, as far as the domain cares, and as whom the engine knows them. */
import type { CallerTerms, JobTerms } from '../engine/engine.ts';
import type { KeyLimits } from '../stores/key-store.ts';

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
  readonly limits: KeyLimits;
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
