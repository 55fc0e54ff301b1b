/**
 * Reads the arguments of a command, and prints tables. Every function that reads throws UsageError for an argument that
 * it cannot read.
 */
import { parseArgs } from 'node:util';
import { isOwnerName } from '../domain/keys.ts';
import { messageOf } from '../engine/errors.ts';
import { visible } from '../visible.ts';
import { type Options, type Terminal, UsageError } from './command.ts';

/**
 * Parses the options, by name, and the positionals, in order. `needed`: the positionals that must be there, as the help
 * calls them; `more`: how many may follow them.
 */
export function readArguments<const T extends Options>(
  args: readonly string[],
  options: T,
  needed: readonly string[] = [],
  more = 0,
) {
  const parsed = (() => {
    try {
      return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
    } catch (error) {
      throw new UsageError(messageOf(error));
    }
  })();
  const missing = needed.slice(parsed.positionals.length);
  if (missing.length > 0) throw new UsageError(`${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} missing`);
  const unexpected = parsed.positionals[needed.length + more];
  if (unexpected !== undefined) throw new UsageError(`unexpected argument '${unexpected}'`);
  return parsed;
}

/** The value of `--owner`, which must be given and be an owner's name. */
export function ownerFrom(value: string | undefined): string {
  if (value === undefined) throw new UsageError('--owner NAME is needed');
  if (!isOwnerName(value)) {
    throw new UsageError(
      "an owner's name is 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit",
    );
  }
  return value;
}

/** A duration such as `30s`, `15m`, `24h` or `7d`, in milliseconds. */
export function durationFrom(value: string): number {
  const groups = /^(?<count>\d{1,6})(?<unit>[smhd])$/.exec(value)?.groups;
  const unit = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[groups?.unit ?? ''];
  if (groups === undefined || unit === undefined)
    throw new UsageError(`'${value}' is not a duration such as 30s, 15m, 24h or 7d`);
  return Number(groups.count) * unit;
}

/** The whole number within these bounds that is the value of the option `name`. */
export function wholeWithin(name: string, text: string, least: number, most: number): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(`${name}: must be a whole number from ${least} to ${most}`);
}

/** The http or https URL that is the value of the option `name`. */
export function urlFrom(name: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${name}: must be http://… or https://…`);
  return url;
}

/** A number of things: `1 key`, `2 keys`. */
export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}

/** Prints a head and rows; if there are none, says so on standard error. */
export function printTable(terminal: Terminal, head: readonly string[], rows: readonly (readonly string[])[]): void {
  if (rows.length === 0) terminal.err('there are none');
  // Made visible before they are measured.
  const lines = [head, ...rows].map((line) => line.map(visible));
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  for (const line of lines) {
    terminal.out(
      line
        .map((cell, column) => (column === line.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
        .join('  ')
        .trimEnd(),
    );
  }
}

/** One thing of a list: its row in a table, and its object in JSON. */
export interface Listed {
  readonly row: readonly string[];
  readonly plain: object;
}

/** Prints a list: as a table, or for programs as one line of JSON. */
export function printList(
  terminal: Terminal,
  json: boolean | undefined,
  head: readonly string[],
  list: readonly Listed[],
): void {
  if (json === true) terminal.out(JSON.stringify(list.map(({ plain }) => plain)));
  else
    printTable(
      terminal,
      head,
      list.map(({ row }) => row),
    );
}
