/** A table in plain text: columns padded with spaces, two between them. */
import type { Terminal } from './command.ts';

/** Prints a head and rows; if there are none, says so on standard error. */
export function printTable(terminal: Terminal, head: readonly string[], rows: readonly (readonly string[])[]): void {
  if (rows.length === 0) terminal.err('there are none');
  const lines = [head, ...rows];
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
