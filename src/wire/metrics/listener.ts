/** The operator's port: `GET /metrics`, and at `/` the way there. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';

export interface MetricsListener {
  /** Resolves with the port. @throws the system's error. */
  listen(port: number, host: string): Promise<number>;
  close(): Promise<void>;
}

/** Scrapers that may be connected at one time. */
const MAX_CONNECTIONS = 32;

/** A listener for a registry. */
export function createMetricsListener(registry: Registry): MetricsListener {
  const server: Server = createServer({ requestTimeout: 5000, headersTimeout: 5000 }, async (request, response) => {
    request.resume();
    const path = request.url?.split('?', 1)[0];
    if (path === '/') {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
      response.end('<!doctype html><title>Umpire</title><a href="/metrics">/metrics</a>\n');
      return;
    }
    if (path !== '/metrics' || (request.method !== 'GET' && request.method !== 'HEAD')) {
      response.writeHead(path === '/metrics' ? 405 : 404, { 'content-type': 'text/plain' });
      response.end('GET /metrics\n');
      return;
    }
    const text = await registry.metrics();
    response.writeHead(200, { 'content-type': registry.contentType });
    response.end(request.method === 'HEAD' ? undefined : text);
  });
  server.maxConnections = MAX_CONNECTIONS;
  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => {
          server.off('error', reject);
          resolve((server.address() as AddressInfo).port);
        });
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
