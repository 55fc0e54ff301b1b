/** The stores' own failures. The domain turns them into the errors that a caller sees. */

/** The message of an error, or anything else that was thrown, as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The store did not answer, or refused for now. No write was made, except perhaps a change that may be made twice. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
  /** Whole seconds after which a retry is sensible, at least 1. */
  readonly retryAfter: number;
  constructor(message: string, options: { readonly cause?: unknown; readonly retryAfter?: number } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfter = options.retryAfter ?? 1;
  }
}

/** A write was sent, but whether it was made, or will last, is not known. */
export class StoreWriteUnconfirmed extends Error {
  override readonly name = 'StoreWriteUnconfirmed';
}

/** A record exists and cannot be read. It is left as it is. */
export class StoreCorrupt extends Error {
  override readonly name = 'StoreCorrupt';
}
