/** Who sends a request, as far as the domain cares. */

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
