/** What a command of the operator's is. */

/** Where a command reads and writes; tests bring their own. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes one line to standard output. */
  out(line: string): void;
  /** Writes one line to standard error. */
  err(line: string): void;
  /** Writes to standard output as it is. Resolves when there is room for more, to false once nobody reads it. */
  write(text: string): Promise<boolean>;
  /**
   * Shows a line that the next one takes the place of; `''` takes it away. Only there if standard error is a terminal.
   */
  readonly status?: (line: string) => void;
  /** The whole of standard input. */
  input(): Promise<string>;
  /** Standard input as it comes. Ends, or throws, once the signal is aborted. */
  pieces(signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** Resolves when the operator asks the command to end: SIGINT or SIGTERM. */
  interrupted(): Promise<void>;
}

/** One option: how it is parsed, and what the command's page of help says of it. */
export interface Option {
  readonly type: 'string' | 'boolean';
  readonly multiple?: boolean;
  /** What stands behind `--name`, for one with a value. */
  readonly value?: string;
  readonly meaning: string;
  /** What holds without it, where that is worth saying. */
  readonly otherwise?: string;
}

/** Options by their names, without `--`. */
export type Options = Readonly<Record<string, Option>>;

/** One command, such as `keys create`. */
export interface Command {
  /** What stands after `umpire`, without the arguments. */
  readonly name: string;
  /** The arguments, as the help shows them. */
  readonly usage: string;
  /** What the list of commands says of it, in one line. */
  readonly summary: string;
  /** What the arguments that are no options mean. */
  readonly positionals?: readonly (readonly [name: string, meaning: string])[];
  readonly options: Options;
  /** Paragraphs for the page of help. */
  readonly notes?: readonly string[];
  /** The variables of the environment that the command reads. */
  readonly environment: readonly string[];
  /** What exit status 1 means here, beside that something failed. */
  readonly failure?: string;
  /**
   * Does it. Throws UsageError for bad arguments; other errors with a message for the operator end the
   * command with status 1.
   */
  run(args: readonly string[], terminal: Terminal): Promise<void>;
}

/** Every list can be had for programs. */
export const JSON_OPTION = { type: 'boolean', meaning: 'the list as one line of JSON' } as const;

/** `--owner`, for commands that need one. */
export const OWNER_OPTION = { type: 'string', value: 'NAME', meaning: 'who owns the catalogs; needed' } as const;

/** The arguments are wrong: status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The operator ended the command: status 130. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}
