/** A receiver of traces that reads what it is sent and answers 200, as cheaply as possible. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A receiver that listens. */
export interface TraceReceiver {
  /** The settings with which a service sends it the traces of this share of its requests. */
  settings(share: number): Readonly<Record<string, string>>;
  close(): void;
}

/** Starts a receiver in this process. */
export async function startTraceReceiver(): Promise<TraceReceiver> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200).end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    settings: (share) => ({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: String(share),
    }),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
