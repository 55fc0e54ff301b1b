#!/usr/bin/env node
/**
 * The operator's command: `umpire keys …`, `umpire catalogs …`, `umpire models …`, `umpire mock`, … Works beside
 * a running server.
 */
import { once } from 'node:events';
import { addAbortSignal } from 'node:stream';
import { text } from 'node:stream/consumers';
import { runCommand } from './cli/run.ts';

process.title = 'umpire';

/** A writer. A reader that closes early, as `head` does, has what it wanted: the rest goes nowhere. */
function writerTo(stream: NodeJS.WriteStream): (text: string) => Promise<boolean> {
  let open = true;
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    open = false;
  });
  return async (text) => {
    if (open) await new Promise<void>((resolve) => stream.write(text, () => resolve()));
    return open;
  };
}

const [out, err] = [writerTo(process.stdout), writerTo(process.stderr)];
let reads = false;

// Setting the code rather than exiting lets output that is on its way into a pipe arrive.
process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  out: (line) => void out(`${line}\n`),
  err: (line) => void err(`${line}\n`),
  write: out,
  ...(process.stderr.isTTY ? { status: (line: string) => void err(`\r\u001b[K${line}`) } : {}),
  input: () => text(process.stdin),
  pieces(signal) {
    reads = true;
    return addAbortSignal(signal, process.stdin);
  },
  interrupted: async () => {
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  },
});
// What nobody waits for any more must not keep the process.
if (reads) process.stdin.destroy();
