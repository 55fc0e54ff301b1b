#!/usr/bin/env node
/** The operator's command: `umpire keys …`, `umpire catalogs …`, `umpire models …`, `umpire mock`, … Works beside a running server. */
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { runCommand } from './cli/run.ts';

process.title = 'umpire';

// Setting the code rather than exiting lets output that is on its way into a pipe arrive.
process.exitCode = await runCommand(process.argv.slice(2), {
  env: process.env,
  out: (line) => process.stdout.write(`${line}\n`),
  err: (line) => process.stderr.write(`${line}\n`),
  input: () => text(process.stdin),
  interrupted: async () => {
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  },
});
