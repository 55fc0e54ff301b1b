/**
 * Traces by OpenTelemetry: one span of kind server for each exchange, with its stages inside. This file and what it
 * imports of OpenTelemetry are loaded only where traces are exported. Spans are made when the exchange is over, from
 * the times that it noted, so no request waits for them.
 */
import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Logger } from '../../logger.ts';
import type { Exchange, Observer } from '../http/exchange.ts';
import { attributesOf, isServerFault, spanName } from './describe.ts';
import { createQuietExporter } from './quiet-exporter.ts';
import { createSampler } from './sampler.ts';
import type { TraceSettings } from './settings.ts';
import { type Stage, stagesOf } from './stages.ts';
import { createWallClock } from './wall-clock.ts';

/** What makes traces: the observer of exchanges, and the end of the export. */
export interface Tracing {
  readonly observe: Observer;
  /** Exports the remaining spans, for at most this many milliseconds. Never rejects. */
  close(milliseconds: number): Promise<void>;
}

/** Traces that go where the settings say. */
export function createTracing(options: {
  readonly settings: TraceSettings;
  /** Whether the port speaks TLS. */
  readonly tls: boolean;
  readonly logger: Logger;
}): Tracing {
  const { settings, logger } = options;
  const { url, headers, timeout, queueSize, delay } = settings;
  const scheme = options.tls ? 'https' : 'http';
  const exporter = createQuietExporter(new OTLPTraceExporter({ url, headers, timeoutMillis: timeout }), logger);
  const provider = new TracerProvider({
    resource: defaultResource().merge(resourceFromAttributes(settings.resource)),
    sampler: createSampler(settings.sampler),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: queueSize,
        maxExportBatchSize: Math.min(512, queueSize),
        scheduledDelayMillis: delay,
        // The last attempt may begin when the time is nearly up, and takes as long again.
        exportTimeoutMillis: 2 * timeout,
      }),
    ],
  });
  const tracer = provider.getTracer('umpire');
  const clock = createWallClock();

  const addStages = (stages: readonly Stage[], parent: Context): void => {
    for (const { name, start, end, inner } of stages) {
      const span = tracer.startSpan(name, { startTime: clock.at(start) }, parent);
      if (inner.length > 0) addStages(inner, trace.setSpan(parent, span));
      span.end(clock.at(end));
    }
  };

  return {
    observe(exchange) {
      if (isProbe(exchange)) return;
      clock.adjust();
      const parent = callersContext(exchange);
      const options = { kind: SpanKind.SERVER, startTime: clock.at(exchange.startedAt) };
      const span = tracer.startSpan(spanName(exchange), options, parent);
      if (!span.isRecording()) return;
      const { traceId, spanId } = span.spanContext();
      exchange.traced({ traceId, spanId, sampled: true });
      span.setAttributes(attributesOf(exchange, scheme));
      if (isServerFault(exchange)) span.setStatus({ code: SpanStatusCode.ERROR });
      addStages(stagesOf(exchange), trace.setSpan(parent, span));
      span.end(clock.at(exchange.record.endedAt));
    },
    async close(milliseconds) {
      const given = Promise.withResolvers<void>();
      const timer = setTimeout(given.resolve, milliseconds);
      await Promise.race([provider.shutdown().catch(() => {}), given.promise]);
      clearTimeout(timer);
    },
  };
}

/** Exchanges that are not traced: probes are many and say nothing, and gRPC's health and reflection may never end. */
function isProbe({ record: { route } }: Exchange): boolean {
  return route.startsWith('/health/') || route.startsWith('/grpc.');
}

/** The context of the caller's span, if it sent one. */
function callersContext({ record: { trace: caller }, request }: Exchange): Context {
  if (caller === undefined) return ROOT_CONTEXT;
  const state = request.headers.tracestate;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId: caller.traceId,
    spanId: caller.spanId,
    traceFlags: caller.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
    ...(state === undefined ? {} : { traceState: createTraceState(String(state)) }),
  });
}
