/** A request that is not answered: by the bridge, or by the service behind it. */
import type { ErrorReason } from '../domain/errors.ts';

/** Where a value is in a body. */
export type Path = readonly (string | number)[];

interface Details {
  readonly path?: Path | undefined;
  readonly retryAfter?: number | undefined;
  /** Logged, and never sent. */
  readonly cause?: unknown;
}

/** Carries one of the service's own reasons, which each form of request words in its own way. */
export class Refused extends Error {
  readonly reason: ErrorReason;
  /** The value at fault, if it is one. */
  readonly path: Path | undefined;
  /** Seconds after which a retry may succeed. */
  readonly retryAfter: number | undefined;

  /** `message` is sent to the caller: it never holds a key, nor a text of somebody else's. */
  constructor(reason: ErrorReason, message: string, { path, retryAfter, cause }: Details = {}) {
    super(message, { cause });
    this.name = 'Refused';
    this.reason = reason;
    this.path = path;
    this.retryAfter = retryAfter;
  }

  /** Where the value at fault is, as `questions[0].choices`; null without one. */
  get param(): string | null {
    if (this.path === undefined || this.path.length === 0) return null;
    const steps = this.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`));
    return steps.join('').replace(/^\./, '');
  }
}
