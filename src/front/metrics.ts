/** What is counted of a port, in the Prometheus text format on a port of its own. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';

/** The upper bounds of the buckets of durations, seconds. */
const BUCKETS = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30];

/** The answer to a probe. */
type Health = (path: string) => Promise<{ readonly status: number }>;

/** The metrics of one port. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = new Histogram({
    name: 'umpire_bridge_request_seconds',
    help: 'Requests by route and status, and how long they took',
    labelNames: ['route', 'status'],
    buckets: BUCKETS,
    registers: [this.#registry],
  });
  readonly #decisions = new Counter({
    name: 'umpire_bridge_decisions_total',
    help: 'Questions that were answered, each by a decision of the service',
    registers: [this.#registry],
  });

  /** A request was answered. */
  request(route: string, status: number, seconds: number): void {
    this.#requests.observe({ route, status }, seconds);
  }

  /** So many questions were answered. */
  decisions(count: number): void {
    this.#decisions.inc(count);
  }

  /** Serves `GET /metrics` and the probes, where callers do not come. Rejects with the system's error. */
  async listen(port: number, host: string, health: Health): Promise<Server> {
    collectDefaultMetrics({ register: this.#registry });
    const server = createServer(async ({ url = '' }, response) => {
      if (url === '/metrics') {
        const text = await this.#registry.metrics();
        response.writeHead(200, { 'content-type': this.#registry.contentType }).end(text);
      } else response.writeHead((await health(url)).status).end();
    });
    await once(server.listen(port, host), 'listening');
    return server;
  }
}
