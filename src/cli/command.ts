/** What every command of `umpire` has in common: its interface, its terminal and its errors. */

/** Where a command reads and writes. The tests pass one of their own. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes one line to standard output. A command's lines are made `visible` on their way. */
  out(line: string): void;
  /** Writes one line to standard error, in the same way. */
  err(line: string): void;
  /**
   * Writes a text to standard output, unchanged unless that is a screen. Resolves when there is room for more, to false
   * once nobody reads it.
   */
  write(text: string): Promise<boolean>;
  /** Shows a line that the next call replaces; `''` removes it. Undefined unless standard error is a terminal. */
  readonly status?: (line: string) => void;
  /** The whole of standard input. */
  input(): Promise<string>;
  /** Standard input as it arrives. Ends, or throws, once the signal is aborted. */
  pieces(signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** Resolves when the operator asks the command to end: SIGINT or SIGTERM. */
  interrupted(): Promise<void>;
  /**
   * Shows a page, and gives it the keys that are pressed, until it ends; throws the signal's reason once it is aborted.
   * Leaves the terminal as it was. Undefined unless standard input and output are a terminal.
   */
  readonly screen?: (page: Page, signal: AbortSignal) => Promise<void>;
}

/** A key: what it types, if anything, and the name that `node:readline` has for it; `paste` for what is pasted. */
export interface Key {
  readonly text: string;
  readonly name: string;
}

/** What a whole terminal shows. */
export interface Page {
  /** Its lines, of which none is wider than the columns and all together are not more than the rows. */
  lines(columns: number, rows: number): readonly string[];
  /** Returns false when the page has ended. */
  press(key: Key): boolean;
}

/** One option: how it is parsed, and what the command's help page says about it. */
export interface Option {
  readonly type: 'string' | 'boolean';
  readonly multiple?: boolean;
  /** What follows `--name` on the help page, for an option with a value. */
  readonly value?: string;
  readonly meaning: string;
  /** The default, as the help page states it. */
  readonly otherwise?: string;
}

/** Options by their names, without `--`. */
export type Options = Readonly<Record<string, Option>>;

/** One command, such as `keys create`. */
export interface Command {
  /** The words after `umpire`, without the arguments. */
  readonly name: string;
  /** The arguments, as the help shows them; see `usageOf`. */
  readonly usage: string;
  /** One line about the command, for the list of commands. */
  readonly summary: string;
  /** The meanings of the arguments that are not options. */
  readonly positionals?: readonly (readonly [name: string, meaning: string])[];
  readonly options: Options;
  /** Further paragraphs for the help page. */
  readonly notes?: readonly string[];
  /** The environment variables that the command reads. */
  readonly environment: readonly string[];
  /** A further meaning of exit status 1, beside that something failed. */
  readonly failure?: string;
  /**
   * Runs the command. Throws UsageError for bad arguments, Interrupted where the operator ended it, and any other error
   * with a message for the operator.
   */
  run(args: readonly string[], terminal: Terminal): Promise<void>;
}

/** An option with a value: how the help page calls that, what the option means, and its default. */
export function option(value: string, meaning: string, otherwise?: string) {
  return { type: 'string', value, meaning, ...(otherwise === undefined ? {} : { otherwise }) } as const;
}
/** An option with a value that may be given several times. */
export function repeatable(value: string, meaning: string, otherwise?: string) {
  return { ...option(value, meaning, otherwise), multiple: true } as const;
}
/** An option without a value. */
export function flag(meaning: string) {
  return { type: 'boolean', meaning } as const;
}
/** `--json`, for the commands that print a list: programs read it in place of the table. */
export const JSON_OPTION = flag('the list as one line of JSON');
/** `--owner`, for commands that need one. */
export const OWNER_OPTION = option('NAME', 'who owns the catalogs; needed');
/** `--owner`, for commands that do with all owners what they can do with one. */
export const ANY_OWNER_OPTION = option('NAME', 'of this owner alone');
/** The options that name one catalog of an owner's. */
export const CATALOG_OPTIONS = {
  owner: option('NAME', 'who owns the catalog; needed'),
  catalog: option('ID', 'the catalog; needed'),
} as const;

/** The arguments are wrong: the command ends with status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The operator interrupted the command: it ends with status 130. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}
