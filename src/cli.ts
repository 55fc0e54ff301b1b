#!/usr/bin/env node
/**
 * The operator's command: `umpire keys …`, `umpire catalogs …`, `umpire models …`, `umpire mock`, … Works beside
 * a running server.
 */
import { once } from 'node:events';
import { addAbortSignal } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Page } from './cli/command.ts';
import { showPage } from './cli/review/screen.ts';
import { runCommand } from './cli/run.ts';
import { visible } from './visible.ts';

process.title = 'umpire';

/** A writer to a stream. A reader that closes early, as `head` does, or a terminal that is gone wants no more. */
function writerTo(stream: NodeJS.WriteStream): (text: string) => Promise<boolean> {
  let open = true;
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
    open = false;
  });
  return async (text) => {
    if (open) await new Promise<void>((resolve) => stream.write(text, () => resolve()));
    return open;
  };
}

const [out, err] = [writerTo(process.stdout), writerTo(process.stderr)];
let reads = false;

// The code is set in place of a call of `process.exit`, which would cut off output that is on its way into a pipe.
process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  out: (line) => void out(`${line}\n`),
  err: (line) => void err(`${line}\n`),
  // On a screen the records' texts must not act; for a file or a program they stay as they are.
  write: process.stdout.isTTY ? (piece) => out(piece.split('\n').map(visible).join('\n')) : out,
  ...(process.stderr.isTTY ? { status: (line: string) => void err(`\r\u001b[K${line}`) } : {}),
  input: () => text(process.stdin),
  pieces(signal) {
    reads = true;
    return addAbortSignal(signal, process.stdin);
  },
  interrupted: async () => {
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  },
  ...(process.stdin.isTTY && process.stdout.isTTY
    ? { screen: (page: Page, signal: AbortSignal) => showPage(process.stdin, process.stdout, page, signal) }
    : {}),
});
// An open standard input would keep the process alive although nobody reads it any more.
if (reads) process.stdin.destroy();
