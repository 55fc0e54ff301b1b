/** Forks the worker's entry with the heap, the environment and the priority that an engine process has. */
import { type ChildProcess, fork } from 'node:child_process';
import { getPriority } from 'node:os';
import type { EngineSettings } from '../options.ts';

// What loading a graph frees lies between what it keeps: with one arena the next graph is loaded into it, and what is
// free at the end goes back to the system. Buffers of runs stay below 16 MiB, so none of them is mapped anew with every
// run, which would cost a tenth of its time.
const MALLOC_TUNABLES = [
  'glibc.malloc.arena_max=1',
  'glibc.malloc.mmap_threshold=16777216',
  'glibc.malloc.trim_threshold=16777216',
].join(':');

/** What an engine has of the server's environment, beside the variables that its settings name: it needs no secrets. */
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

/** V8's heap of a process is never smaller than this. */
const LEAST_HEAP_MIB = 64;
const GREATEST_NICENESS = 19;

/** Forks a process; `name` tells it from others in a list of processes. */
export function forkEngine(name: string, settings: EngineSettings): ChildProcess {
  const { workerEntry, choiceCacheBytes, niceness, engineMemoryBytes, variables } = settings;
  // The other half is for models and vectors, which lie outside the heap.
  const heap = Math.max(LEAST_HEAP_MIB, Math.floor(engineMemoryBytes / 2 ** 21));
  const priority = Math.min(GREATEST_NICENESS, getPriority() + niceness);
  return fork(workerEntry, [String(choiceCacheBytes), String(priority), name], {
    serialization: 'advanced',
    // Not the parent's own: a debugger's port or a test runner's loader is not for the engines.
    execArgv: [`--max-old-space-size=${heap}`, '--max-semi-space-size=4', '--disable-warning=ExperimentalWarning'],
    env: {
      ...Object.fromEntries(
        [...ENVIRONMENT, ...variables].flatMap((key) =>
          process.env[key] === undefined ? [] : [[key, process.env[key]]],
        ),
      ),
      // The runtime would report on itself over the network if it were let.
      ORT_DISABLE_TELEMETRY: '1',
      GLIBC_TUNABLES: MALLOC_TUNABLES,
    },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
}
