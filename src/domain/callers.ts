/** Who sends a request: the caller as the domain sees it, and the tenant as the engine does. */
import type { CallerTerms, JobTerms } from '../engine/engine.ts';
import type { KeyLimits } from '../stores/key-store.ts';

/** A caller without a key, told apart by address: an IPv4 address, or the /64 of an IPv6 address. */
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

/** Who sends a request, with a key or without one. */
export type Caller = AnonymousCaller | KeyedCaller;

/** A caller, and the deadline of its call on the clock of `performance.now()`. */
interface CalledBy {
  readonly caller: Caller;
  readonly deadline: number;
}

/** The caller as the engine knows it. The tenant is the owner, or the address of an anonymous caller. */
export function callerTerms({ caller, deadline }: CalledBy): CallerTerms {
  return caller.kind === 'key'
    ? { deadline, tenant: caller.owner, keyed: true }
    : { deadline, tenant: caller.address, keyed: false };
}

/** The terms of a job for a caller. */
export function jobTerms(terms: CalledBy & Pick<JobTerms, 'signal'>): JobTerms {
  return { ...callerTerms(terms), signal: terms.signal };
}
