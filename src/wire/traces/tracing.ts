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
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from '../../logger.ts';
import type { Exchange, Observer } from '../http/exchange.ts';
import { attributesOf, isServerFault, type Stage, spanName, stagesOf } from './describe.ts';
import type { TraceSettings } from './settings.ts';

/** Traces that go where the settings say. */
export class Tracing {
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  readonly #scheme: string;

  /** `tls`: whether the port speaks TLS. */
  constructor(settings: TraceSettings, tls: boolean, logger: Logger) {
    const { timeout, queueSize, delay } = settings;
    this.#scheme = tls ? 'https' : 'http';
    const exporter = createQuietExporter(new OTLPTraceExporter(), logger);
    this.#provider = new TracerProvider({
      resource: defaultResource()
        .merge(resourceFromAttributes({ 'service.name': 'umpire' }))
        .merge(detectResources({ detectors: RESOURCE })),
      sampler: samplerOf(settings),
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
    this.#tracer = this.#provider.getTracer('umpire');
  }

  readonly observe: Observer = (exchange) => {
    if (isProbe(exchange)) return;
    // From the clock of the exchange to the time of day: one number, so that its spans lie within one another.
    const offset = Date.now() - performance.now();
    const parent = callersContext(exchange);
    const options = { kind: SpanKind.SERVER, startTime: offset + exchange.startedAt };
    const span = this.#tracer.startSpan(spanName(exchange), options, parent);
    if (!span.isRecording()) return;
    const { traceId, spanId } = span.spanContext();
    exchange.traced({ traceId, spanId, sampled: true });
    span.setAttributes(attributesOf(exchange, this.#scheme));
    if (isServerFault(exchange)) span.setStatus({ code: SpanStatusCode.ERROR });
    this.#addStages(stagesOf(exchange), trace.setSpan(parent, span), offset);
    span.end(offset + exchange.record.endedAt);
  };

  /** Exports the remaining spans, for at most this many milliseconds. Never rejects. */
  async close(milliseconds: number): Promise<void> {
    const given = Promise.withResolvers<void>();
    const timer = setTimeout(given.resolve, milliseconds);
    await Promise.race([this.#provider.shutdown().catch(() => {}), given.promise]);
    clearTimeout(timer);
  }

  #addStages(stages: readonly Stage[], parent: Context, offset: number): void {
    for (const { name, start, end, inner } of stages) {
      const span = this.#tracer.startSpan(name, { startTime: offset + start }, parent);
      if (inner.length > 0) this.#addStages(inner, trace.setSpan(parent, span), offset);
      span.end(offset + end);
    }
  }
}

/** Where a span comes from, the later before the earlier. */
const RESOURCE = [serviceInstanceIdDetector, resourceAttributesEnvDetector, serviceNameEnvDetector];

/** The least milliseconds between two log lines about failures. */
const PAUSE = 60_000;

/** Wraps `exporter`: what it cannot deliver is lost, and `logger` is told at most once a minute, nobody else. */
function createQuietExporter(exporter: SpanExporter, logger: Pick<Logger, 'warn'>): SpanExporter {
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

function samplerOf({ sampler, ratio }: TraceSettings): Sampler {
  const root = sampler.endsWith('always_off')
    ? new AlwaysOffSampler()
    : sampler.endsWith('always_on')
      ? new AlwaysOnSampler()
      : new TraceIdRatioBasedSampler(ratio);
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
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
