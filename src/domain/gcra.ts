/**
 * The generic cell rate algorithm: a token bucket kept as one number per subject, the theoretical arrival time (TAT). A
 * request is within the rate if the TAT is at most `burst - 1` intervals ahead of now; it then moves on by one
 * interval. Refusals change nothing.
 */

/** Sustained requests a second, and how many may come at once after a pause (at least 1). */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * The TAT after a request that is within the rate, or how many milliseconds it is too early. Times are milliseconds on
 * one clock.
 */
export type RateVerdict =
  | { readonly kind: 'within'; readonly tat: number }
  | { readonly kind: 'beyond'; readonly waitMs: number };

/** Judges one request at `now`; `tat` is the subject's, undefined if it has none. */
export function judgeRate(rate: Rate, tat: number | undefined, now: number): RateVerdict {
  const interval = 1000 / rate.perSecond;
  const reach = (rate.burst - 1) * interval;
  // A TAT further ahead than a request could have moved it comes from a clock that was set back or a limit that was
  // lowered. It counts as a bucket with one token left: taken as it is, it would refuse everything until the clock
  // has caught up.
  const start = tat !== undefined && tat > now + reach + interval + 1 ? now + reach : Math.max(tat ?? now, now);
  const early = start - now - reach;
  // A rounding error of a nanosecond must not refuse a caller that waited exactly as long as it was told.
  return early <= 1e-6 ? { kind: 'within', tat: start + interval } : { kind: 'beyond', waitMs: early };
}
