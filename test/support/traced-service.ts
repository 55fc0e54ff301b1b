/** A service whose traces go to a receiver of its own. */
import type { ExecutionContext } from 'ava';
import { until } from './redis.ts';
import { startService, type TestService } from './service.ts';
import { type ReceivedSpan, startTraceReceiver, type TraceReceiver } from './trace-receiver.ts';

/** A decision with words that no span may hold. */
export const body = {
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

/** The spans once there are `servers` of kind server among them. The spans of a request are sent together, or nearly. */
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
