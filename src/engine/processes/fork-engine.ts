/** Forks the worker's entry with the heap, the environment and the priority that an engine process has. */
import { type ChildProcess, fork } from 'node:child_process';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import type { EngineSettings } from '../options.ts';

// Loading a graph leaves free memory between the blocks that it keeps. With one arena the next graph is loaded into
// these gaps, and what is free at the end of the heap goes back to the system. Buffers of runs stay below 16 MiB, so
// none of them is mapped anew with every run, which would cost a tenth of its time.
const MALLOC_TUNABLES = [
  'glibc.malloc.arena_max=1',
  'glibc.malloc.mmap_threshold=16777216',
  'glibc.malloc.trim_threshold=16777216',
].join(':');

/**
 * The variables of the server's environment that every engine gets, in addition to those that its settings name. Others
 * may be secrets, which an engine does not need.
 */
const ENVIRONMENT = [
  'PATH',
  'HOME',
  'TMPDIR',
  'LANG',
  'TZ',
  'LD_LIBRARY_PATH',
  'NODE_COMPILE_CACHE',
  'NODE_EXTRA_CA_CERTS',
];

/** The smallest bound of a process's V8 heap. */
const LEAST_HEAP_MIB = 64;
const GREATEST_NICENESS = 19;

const MAX_OUTPUT_LENGTH = 2000;

/** Forks a process; `name` tells it from others in the log and in a list of processes. */
export function forkEngine(name: string, settings: EngineSettings): ChildProcess {
  const { workerEntry, choiceCacheBytes, niceness, engineMemoryBytes, cacheDir, variables, logger } = settings;
  // The other half is for models and vectors, which lie outside V8's heap.
  const heap = Math.max(LEAST_HEAP_MIB, Math.floor(engineMemoryBytes / 2 ** 21));
  const priority = Math.min(GREATEST_NICENESS, getPriority() + niceness);
  const child = fork(workerEntry, [String(choiceCacheBytes), String(priority), name, cacheDir], {
    serialization: 'advanced',
    // Not the parent's own arguments: a debugger's port or a test runner's loader is not for the engines.
    execArgv: [`--max-old-space-size=${heap}`, '--max-semi-space-size=4', '--disable-warning=ExperimentalWarning'],
    env: {
      ...(cacheDir === '' ? {} : { NODE_COMPILE_CACHE: join(cacheDir, 'code') }),
      ...Object.fromEntries(
        [...ENVIRONMENT, ...variables].flatMap((key) =>
          process.env[key] === undefined ? [] : [[key, process.env[key]]],
        ),
      ),
      // Without this the runtime would send telemetry over the network.
      ORT_DISABLE_TELEMETRY: '1',
      GLIBC_TUNABLES: MALLOC_TUNABLES,
    },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    const fields = { engine: name, pid: child.pid, output: text.slice(0, MAX_OUTPUT_LENGTH) };
    logger.warn(fields, 'an engine wrote to its error output');
  });
  return child;
}
