/** An exporter whose failures are logged at intervals and reach nobody else: what it cannot deliver is lost. */
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { Logger } from '../../logger.ts';

/** The least milliseconds between two log lines about failures. */
const PAUSE = 60_000;

/** Wraps `exporter`; its failures are logged by `logger` at most once a minute. */
export function createQuietExporter(exporter: SpanExporter, logger: Pick<Logger, 'warn'>): SpanExporter {
  let lost = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  const failed = (spans: number, error: Error | undefined): void => {
    lost += spans;
    const now = performance.now();
    if (now - toldAt < PAUSE) return;
    toldAt = now;
    // The message alone: the error also holds what the receiver answered.
    logger.warn({ lostSpans: lost, problem: error?.message.slice(0, 200) }, 'traces cannot be exported');
    lost = 0;
  };
  return {
    export(spans, done) {
      exporter.export(spans, ({ code, error }) => {
        if (code !== 0) failed(spans.length, error);
        done({ code: 0 });
      });
    },
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  };
}
