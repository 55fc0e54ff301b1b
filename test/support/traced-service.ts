/** A service whose traces go to a receiver of its own. */
import type { ExecutionContext } from 'ava';
import { until } from './redis.ts';
import { startService, type TestService } from './service.ts';
import { type ReceivedSpan, startTraceReceiver, type TraceReceiver } from './trace-receiver.ts';

/** A decision with words that no span may hold. */
export const BODY = {
  model: 'minilm-l6',
  input: 'I was charged twice for my secret order',
  instruction: 'Which secret team should handle this?',
  choices: ['secret charges', 'parcels', 'logins'],
};
export const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
export const PARENT = '00f067aa0ba902b7';
export const traceparent = `00-${TRACE}-${PARENT}-01`;

/** Milliseconds that a busy machine may take. */
export const PATIENCE = 60_000;

export type Traced = TestService & { readonly receiver: TraceReceiver };

/** A service whose traces go to a receiver of its own. */
export async function startTraced(
  t: Pick<ExecutionContext, 'teardown'>,
  env: Record<string, string> = {},
  overrides: Parameters<typeof startService>[1] = {},
): Promise<Traced> {
  const receiver = await startTraceReceiver();
  const service = await startService(
    { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: '20', ...env },
    overrides,
  );
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= service.stop();
    return stopped;
  };
  t.teardown(async () => {
    await stop();
    await receiver.close();
  });
  return { ...service, stop, receiver };
}

/**
 * The spans once there are `servers` of kind server among them. The spans of a request are sent together, or nearly.
 */
export async function spansOf(
  t: ExecutionContext,
  { receiver }: Traced,
  servers: number,
): Promise<readonly ReceivedSpan[]> {
  const there = (): number => receiver.spans.filter(({ kind }) => kind === 'SPAN_KIND_SERVER').length;
  await until(() => there() >= servers, PATIENCE);
  t.is(there(), servers);
  return receiver.spans;
}

/** The span of kind server. */
export const serverOf = (spans: readonly ReceivedSpan[]): ReceivedSpan => {
  const found = spans.find(({ kind }) => kind === 'SPAN_KIND_SERVER');
  if (found === undefined) throw new Error('there is no span of kind server');
  return found;
};

/**
 * Checks that every span but the servers' lies in its parent, and returns `parent > child` by name, in order of time.
 */
export function nesting(t: ExecutionContext, spans: readonly ReceivedSpan[]): readonly string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  t.is(byId.size, spans.length, 'ids are unique');
  const inner = spans.filter(({ kind }) => kind !== 'SPAN_KIND_SERVER');
  return inner
    .toSorted((a, b) => Number(a.start - b.start) || Number(b.end - a.end))
    .map((span) => {
      const parent = byId.get(span.parentSpanId);
      if (parent === undefined) throw new Error(`${span.name} has no parent`);
      t.is(span.traceId, parent.traceId);
      t.is(span.kind, 'SPAN_KIND_INTERNAL');
      t.true(parent.start <= span.start && span.start <= span.end && span.end <= parent.end, `${span.name} in time`);
      return `${parent.name} > ${span.name}`;
    });
}
