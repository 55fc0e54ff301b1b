/**
 * Loaded into the serving process before its own code: whenever its parent asks, it collects garbage and sends back how
 * much memory is in use.
 */

declare const gc: (() => void) | undefined;

process.on('message', (message) => {
  if (message !== 'memory') return;
  gc?.();
  gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  process.send?.({ heapUsed, rss });
});
// The channel to the parent must not keep the service from ending.
process.channel?.unref();
