/** Why a process ended, as metrics count it, and what that says of the job that it was working on. */

/**
 * `stuck`: killed because it made no progress; `crashed`: by itself; `killed`: somebody else sent SIGKILL or SIGTERM
 * (an operator, or the system when memory runs out); `drained`: it was told to end.
 */
export type DeathCause = 'stuck' | 'crashed' | 'killed' | 'drained';

/** How a process ended. */
export interface Death {
  readonly cause: DeathCause;
  /** Why it ended, in words for the log. */
  readonly reason: string;
}

/** The death of a process that made no progress. */
export const STUCK: Death = { cause: 'stuck', reason: 'killed: it made no progress' };

/** The death of a process that was told to end, had nothing else to do, and did not. */
export const OVERDUE: Death = { cause: 'drained', reason: 'killed: it did not end in time' };

/** The death behind a child process's `exit` event. `asked`: why its owner killed it, if it did. */
export function deathOf(code: number | null, signal: NodeJS.Signals | null, asked: Death | undefined): Death {
  if (asked !== undefined) return asked;
  if (signal === null) {
    return { cause: code === 0 ? 'drained' : 'crashed', reason: `exited with code ${code}` };
  }
  const foreign = signal === 'SIGKILL' || signal === 'SIGTERM';
  return { cause: foreign ? 'killed' : 'crashed', reason: `ended by ${signal}` };
}

/** Whether the job that was running may have ended the process. */
export function blamesJob({ cause }: Death): boolean {
  return cause === 'stuck' || cause === 'crashed';
}
