/** The operator's command in tests: it runs in this process, on a terminal that keeps what is written. */
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Terminal } from '../../src/cli/command.ts';
import { runCommand } from '../../src/cli/run.ts';

/** How a command ended. */
export interface Ran {
  readonly status: number;
  /** Standard output and standard error, whole. */
  readonly out: string;
  readonly err: string;
}

/** The lines of a text, without what ends the last one. The last line that `keys create` writes is the key. */
export const linesOf = (text: string): readonly string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));

/** Runs a command. `terminal`: what differs from one with an empty environment, no input and nobody who interrupts. */
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
