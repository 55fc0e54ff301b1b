/** A receiver of traces: a plain HTTP server that decodes what OTLP exporters send, and can be brought to fail. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { loadSync, type MethodDefinition, type ServiceDefinition } from '@grpc/proto-loader';
import { listen } from './listening.ts';

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
    if (receiver.answer === succeed) spans.push(...spansOf(requestDeserialize(Buffer.concat(chunks))));
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

function spansOf({ resource_spans }: ExportRequest): readonly ReceivedSpan[] {
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
