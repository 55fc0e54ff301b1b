/**
 * The entry of a process that asks inference servers. Like an engine it lives as long as its parent, and leaves signals that are meant for the service
 * to the parent.
 */
import { setPriority } from 'node:os';
import type { FromEngine, ToEngine } from '../worker/messages.ts';
import { createInferenceLoop } from './loop.ts';

const reportInterval = 250;
const memoryInterval = 1000;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.on('disconnect', () => process.exit(0));
setPriority(Number(process.argv[3] ?? 0));

const send = (message: FromEngine): void => {
  process.send?.(message, undefined, undefined, () => {});
};
const loop = createInferenceLoop(Number(process.argv[2]), send, () => {
  loop.report();
  // A last message whose delivery is awaited: those before it are delivered then, too.
  process.send?.({ kind: 'progress' } satisfies FromEngine, undefined, undefined, () => process.disconnect?.());
});
process.on('message', (message) => loop.receive(message as ToEngine));
setInterval(() => loop.report(), reportInterval).unref();
setInterval(() => send({ kind: 'memory', resident: process.memoryUsage.rss() }), memoryInterval).unref();
send({ kind: 'started' });
