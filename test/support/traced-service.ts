/** A service whose traces go to a receiver of its own. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { loadSync, type MethodDefinition, type ServiceDefinition } from '@grpc/proto-loader';
import type { ExecutionContext } from 'ava';
import { listen } from './listening.ts';
import { until } from './redis.ts';
import { startService, type TestService } from './service.ts';

/** A span as it was sent, with its ids as hexadecimal digits and its times as nanoseconds since the epoch. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly name: string;
  readonly kind: string;
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly status: string;
  readonly flags: number;
  /** Of the resource that it came from. */
  readonly resource: Readonly<Record<string, string | number | boolean>>;
}

export interface TraceReceiver {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** The requests so far, failed ones among them. */
  readonly requests: readonly Pick<IncomingMessage, 'url' | 'headers'>[];
  /** What it answers from now on, instead of 200. */
  answer: (response: ServerResponse) => void;
  close(): Promise<void>;
}

interface KeyValue {
  readonly key: string;
  readonly value: { readonly value: string; readonly [kind: string]: unknown };
}

interface ExportRequest {
  readonly resource_spans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scope_spans: readonly {
      readonly spans: readonly {
        readonly trace_id: Buffer;
        readonly span_id: Buffer;
        readonly trace_state: string;
        readonly parent_span_id: Buffer;
        readonly name: string;
        readonly kind: string;
        readonly start_time_unix_nano: string;
        readonly end_time_unix_nano: string;
        readonly attributes: readonly KeyValue[];
        readonly status: { readonly code: string } | null;
        readonly flags: number;
      }[];
    }[];
  }[];
}

const definition = loadSync(fileURLToPath(new URL('./trace-service.proto', import.meta.url)), {
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
  oneofs: true,
});
const service = definition['opentelemetry.proto.collector.trace.v1.TraceService'] as ServiceDefinition;
const { requestDeserialize } = service.Export as MethodDefinition<ExportRequest, object>;

const succeed = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
};

/** Starts one. */
export async function startTraceReceiver(): Promise<TraceReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: Pick<IncomingMessage, 'url' | 'headers'>[] = [];
  const server = createServer(async (request, response) => {
    requests.push({ url: request.url, headers: request.headers });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (receiver.answer === succeed) spans.push(...decodedSpans(requestDeserialize(Buffer.concat(chunks))));
    receiver.answer(response);
  });
  const receiver: TraceReceiver = {
    url: `http://127.0.0.1:${await listen(server)}`,
    spans,
    requests,
    answer: succeed,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return receiver;
}

function decodedSpans({ resource_spans }: ExportRequest): readonly ReceivedSpan[] {
  return resource_spans.flatMap(({ resource, scope_spans }) =>
    scope_spans.flatMap(({ spans }) =>
      spans.map((span) => ({
        traceId: span.trace_id.toString('hex'),
        spanId: span.span_id.toString('hex'),
        parentSpanId: span.parent_span_id.toString('hex'),
        traceState: span.trace_state,
        name: span.name,
        kind: span.kind,
        start: BigInt(span.start_time_unix_nano),
        end: BigInt(span.end_time_unix_nano),
        attributes: record(span.attributes),
        status: span.status?.code ?? 'STATUS_CODE_UNSET',
        flags: span.flags,
        resource: record(resource.attributes),
      })),
    ),
  );
}

function record(pairs: readonly KeyValue[]): Record<string, string | number | boolean> {
  return Object.fromEntries(
    pairs.map(({ key, value }) => {
      const held = value[value.value];
      return [key, value.value === 'int_value' ? Number(held) : (held as string | number | boolean)];
    }),
  );
}

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
