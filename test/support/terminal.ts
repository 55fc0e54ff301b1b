/** A terminal for commands in tests: what was written, line by line. */

import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Terminal } from '../../src/cli/command.ts';
import { runCommand } from '../../src/cli/run.ts';

/** What of a terminal most tests leave alone: no input, nobody who interrupts. */
export const quiet: Pick<Terminal, 'write' | 'input' | 'pieces' | 'interrupted'> = {
  write: async () => true,
  input: async () => '',
  pieces: () => Readable.from([]),
  interrupted: async () => {},
};

/** How a command ended. */
export interface Ran {
  readonly status: number;
  /** Standard output and standard error, whole. */
  readonly out: string;
  readonly err: string;
}

/** Runs a command. `terminal`: what differs from a quiet one. */
export async function runUmpire(
  args: readonly string[],
  { input = '', ...terminal }: Partial<Omit<Terminal, 'input'>> & { readonly input?: string | Readable } = {},
): Promise<Ran> {
  const written = { out: '', err: '' };
  const status = await runCommand(args, {
    env: {},
    out: (line) => {
      written.out += `${line}\n`;
    },
    err: (line) => {
      written.err += `${line}\n`;
    },
    write: async (piece) => {
      written.out += piece;
      return true;
    },
    input: () => (typeof input === 'string' ? Promise.resolve(input) : text(input)),
    pieces: () => (typeof input === 'string' ? Readable.from(input === '' ? [] : [Buffer.from(input)]) : input),
    interrupted: () => new Promise(() => {}),
    ...terminal,
  });
  return { status, ...written };
}
