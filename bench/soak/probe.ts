/**
 * Loaded into the serving process before its own code: tells its memory after a forced collection whenever
 * its parent asks.
 */

declare const gc: (() => void) | undefined;

process.on('message', (message) => {
  if (message !== 'memory') return;
  gc?.();
  gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  process.send?.({ heapUsed, rss });
});
// The service must end as it always does, whoever listens.
process.channel?.unref();
