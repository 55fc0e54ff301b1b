/** The engine's own failures. The domain turns them into what a caller sees. */

/** The queue cannot take the job in time. `retryAfter`: whole seconds until it probably could, at least 1. */
export class EngineOverloaded extends Error {
  override readonly name = 'EngineOverloaded';
  readonly retryAfter: number;
  constructor(retryAfter: number) {
    super('more work is queued than can be done in time');
    this.retryAfter = retryAfter;
  }
}

/**
 * The job takes longer than its deadline allows even if there is nothing else to do, so that waiting would not help.
 * Times in milliseconds.
 */
export class DeadlineTooShort extends Error {
  override readonly name = 'DeadlineTooShort';
  /** What the job takes, as estimated. */
  readonly needed: number;
  /** What was left until its deadline when it arrived. */
  readonly left: number;
  constructor(needed: number, left: number) {
    super('the job takes longer than its deadline allows');
    this.needed = needed;
    this.left = left;
  }
}

/** The model is known but no engine can serve it now. */
export class ModelUnavailable extends Error {
  override readonly name = 'ModelUnavailable';
  readonly retryAfter: number;
  constructor(message: string, retryAfter: number) {
    super(message);
    this.retryAfter = retryAfter;
  }
}

/** The deadline passed before the answer was there. */
export class JobDeadlinePassed extends Error {
  override readonly name = 'JobDeadlinePassed';
  constructor() {
    super('the deadline passed before the decision was made');
  }
}

/** The caller left before the decision was made: nobody waits for an answer. */
export class JobCanceled extends Error {
  override readonly name = 'JobCanceled';
  constructor() {
    super('the caller left before the decision was made');
  }
}

/** The service is shutting down: the engine takes no more jobs. */
export class EngineClosing extends Error {
  override readonly name = 'EngineClosing';
  constructor() {
    super('the engine is shutting down');
  }
}

/** An engine failed at the job twice, or in a way that a retry would not mend. */
export class EngineFailed extends Error {
  override readonly name = 'EngineFailed';
}

/** The engine ended while it worked on the job, and perhaps because of it: no other engine is given the job. */
export class JobAbandoned extends Error {
  override readonly name = 'JobAbandoned';
}

/** The whole seconds after which a caller is told to try again, at least 1. */
export function retryAfterOf(milliseconds: number): number {
  return Math.max(1, Math.ceil(milliseconds / 1000));
}

/** What the system calls an error, or its message where it is another's. */
export function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? messageOf(error);
}

/** The message of something that was thrown: the error's, or the value itself as text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
