#!/usr/bin/env node
/** The operator's command: `umpire keys …`, `umpire catalogs …`, `umpire models …`, `umpire mock`, … Works beside a running server. */
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { runCommand } from './cli/run.ts';

process.title = 'umpire';

/** A line writer. A reader that closes early, as `head` does, has what it wanted: the command goes on to its end and the rest goes nowhere. */
function writerTo(stream: NodeJS.WriteStream): (line: string) => void {
  let open = true;
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    open = false;
  });
  return (line) => {
    if (open) stream.write(`${line}\n`);
  };
}

// Setting the code rather than exiting lets output that is on its way into a pipe arrive.
process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  out: writerTo(process.stdout),
  err: writerTo(process.stderr),
  input: () => text(process.stdin),
  interrupted: async () => {
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  },
});
