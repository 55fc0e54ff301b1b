/**
 * The metrics port: `GET /metrics`, at `/` a link to it, and the probes of health, which callers of the service's port
 * cannot crowd out here. Probes are answered as they are there.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Registry } from 'prom-client';
import type { Health } from '../health.ts';
import { envelopeBody, errorHeaders, httpStatus } from '../http/fault.ts';
import { listen, type Place } from '../http/listen.ts';
import { probe } from '../probes.ts';

/** The port that metrics are read at, from `listen` to `close`. */
export interface MetricsListener {
  /** Resolves with the place once it is open. @throws the system's error. */
  listen(place: Place): Promise<Place>;
  close(): Promise<void>;
}

/** Scrapers and probes that may be connected at one time. */
const MAX_CONNECTIONS = 64;
/** Milliseconds that a request may take to arrive, and a response to be read. */
const TIMEOUT = 5000;

/** A listener for a registry and the state of health. */
export function createMetricsListener(registry: Registry, health: Health): MetricsListener {
  const server: Server = createServer(
    { requestTimeout: TIMEOUT, headersTimeout: TIMEOUT, connectionsCheckingInterval: 1000 },
    async (request, response) => {
      request.resume();
      const path = request.url?.split('?', 1)[0] ?? '';
      const allowed = request.method === 'GET' || request.method === 'HEAD';
      if (allowed && answerProbe(health, path, request, response)) return;
      if (allowed && path === '/') {
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
        response.end('<!doctype html><title>Umpire</title><a href="/metrics">/metrics</a>\n');
        return;
      }
      if (path !== '/metrics' || !allowed) {
        response.writeHead(path === '/metrics' ? 405 : 404, { 'content-type': 'text/plain' });
        response.end('GET /metrics, /health/live or /health/ready\n');
        return;
      }
      const text = await registry.metrics();
      response.writeHead(200, { 'content-type': registry.contentType });
      response.end(request.method === 'HEAD' ? undefined : text);
    },
  );
  // Also closes connections whose responses nobody reads: nothing here takes as long.
  server.setTimeout(TIMEOUT, (socket) => socket.destroy());
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    // The oldest is closed, not the newcomer: probes connect anew each time, and a scraper connects again.
    const [oldest] = sockets;
    if (sockets.size >= MAX_CONNECTIONS) oldest?.destroy();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return {
    listen: (place) => listen(server, place),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Answers the request if its path is a probe's; returns whether it is. */
function answerProbe(health: Health, path: string, request: IncomingMessage, response: ServerResponse): boolean {
  const state = probe(health, path);
  if (state === undefined) return false;
  const { fault } = state;
  const body = fault === undefined ? state.body : envelopeBody(fault);
  response.writeHead(fault === undefined ? 200 : httpStatus(fault), {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(fault === undefined ? {} : errorHeaders(fault)),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
  return true;
}
