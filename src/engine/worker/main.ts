/**
 * The entry of an engine process. It lives no longer than its parent: it ends when it is told to drain or when the
 * channel to the parent closes, and leaves signals that are meant for the service (Ctrl-C in a terminal, a stop of the
 * whole group) to the parent. Its arguments are the bytes of its cache of choices, its priority, a name that tells it
 * from others in a list of processes, and the folder of cache.ts.
 */
import { flushCompileCache } from 'node:module';
import { setPriority } from 'node:os';
import { WorkerLoop } from './loop.ts';
import type { FromEngine, ToEngine } from './messages.ts';

/** Milliseconds between reports of the work under way, and of the resident memory. */
const REPORT_INTERVAL = 250;
const MEMORY_INTERVAL = 1000;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.on('disconnect', () => process.exit(0));

// Decisions must not keep the serving process from answering: it has the higher priority on the same cores.
setPriority(Number(process.argv[3] ?? 0));

const send = (message: FromEngine): void => {
  process.send?.(message, undefined, undefined, () => {});
  // A process that is killed would not keep its compiled code for the next one.
  if (message.kind === 'loaded') flushCompileCache();
};
// Awaits the delivery of a last message: all earlier ones are delivered by then, too.
const end = (): void => {
  process.send?.({ kind: 'progress' } satisfies FromEngine, undefined, undefined, () => process.disconnect?.());
};
const resident = (): number => process.memoryUsage.rss();
const loop = new WorkerLoop(Number(process.argv[2]), send, end, resident, process.argv[5]);
process.on('message', (message) => loop.receive(message as ToEngine));
setInterval(() => loop.report(), REPORT_INTERVAL).unref();
setInterval(() => send({ kind: 'memory', resident: resident() }), MEMORY_INTERVAL).unref();
