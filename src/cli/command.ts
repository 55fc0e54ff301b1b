/** What a command of the operator's is. */

/** Where a command reads and writes; tests bring their own. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes one line to standard output. */
  out(line: string): void;
  /** Writes one line to standard error. */
  err(line: string): void;
  /** The whole of standard input. */
  input(): Promise<string>;
  /** Resolves when the operator asks the command to end: SIGINT or SIGTERM. */
  interrupted(): Promise<void>;
}

/** One command, such as `keys create`. */
export interface Command {
  /** What stands after `umpire`, without the arguments. */
  readonly name: string;
  /** The arguments, as the help shows them. */
  readonly usage: string;
  readonly summary: string;
  /** Does it. Throws UsageError for bad arguments; other errors with a message for the operator end the command with status 1. */
  run(args: readonly string[], terminal: Terminal): Promise<void>;
}

/** The arguments are wrong: status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
