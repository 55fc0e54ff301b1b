/** Metrics as one part: what counts exchanges when they are over, and the port where the counts are read. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Counter, Histogram, Registry } from 'prom-client';
import { ERROR_TABLE } from '../../domain/errors.ts';
import { STORE_BUDGET_MS } from '../../stores/budget.ts';
import { type Health, probe } from '../health.ts';
import type { Observer } from '../http/exchange.ts';
import { envelopeBody, errorHeaders, httpStatus, shownStatus } from '../http/response.ts';
import { listen, type Place } from '../listener/http1-server.ts';
import { addStateMetrics, type StateSources } from './state.ts';

/** The metrics of a service: the observer that counts exchanges, and the port where the counts are read. */
export class Metrics {
  readonly observe: Observer;
  readonly #server: Server;

  /** Nothing listens until `listen`. */
  constructor(sources: StateSources & { readonly health: Health }) {
    const registry = new Registry();
    this.observe = createObserver(registry);
    addStateMetrics(registry, sources);
    this.#server = createMetricsServer(registry, sources.health);
  }

  /** Resolves with the place once it is open. @throws the system's error. */
  listen(place: Place): Promise<Place> {
    return listen(this.#server, place);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}

/** Upper bounds in seconds, from a cached answer to the longest deadline that a caller may state. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const SHARES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];

/** An observer that counts in metrics that it adds to `registry`. */
function createObserver(registry: Registry): Observer {
  const counter = <L extends string>(name: string, labelNames: readonly L[], help: string): Counter<L> =>
    new Counter({ name, help, labelNames, registers: [registry] });
  const histogram = <L extends string>(name: string, labelNames: readonly L[], help: string, buckets: number[]) =>
    new Histogram({ name, help, labelNames, buckets, registers: [registry] });
  const requests = counter(
    'umpire_requests_total',
    ['route', 'protocol', 'status'],
    'Requests that ended, by route, protocol and HTTP status; of a failure over gRPC the status that REST has for it.',
  );
  const seconds = histogram(
    'umpire_request_seconds',
    ['route', 'protocol'],
    'Time from the first header to the end of the response.',
    SECONDS,
  );
  const errors = counter(
    'umpire_errors_total',
    ['reason'],
    'Requests that failed, by reason: error.code of the contract. Limits that were hit are among them, probes of /health are not.',
  );
  const stages = histogram(
    'umpire_stage_seconds',
    ['stage'],
    'Where the time of requests went: admission, decode, queue, tokenize, infer, store.',
    SECONDS,
  );
  const tokens = counter(
    'umpire_input_tokens_total',
    ['model'],
    'Tokens of instructions and inputs that were decided on.',
  );
  const unread = counter(
    'umpire_unread_decisions_total',
    ['model'],
    'Decisions on texts that the model has no words for, whose probabilities were made more even for it.',
  );
  const learned = counter('umpire_learned_decisions_total', ['model'], 'Decisions by what a catalog learned.');
  const steps = counter(
    'umpire_step_decisions_total',
    ['model', 'step', 'away'],
    'Decisions of cascades by the step that answered; away: whether steps were left out that could not decide, yes or no.',
  );
  const choices = counter('umpire_choices_total', ['model'], 'Choices that were scored.');
  const confidence = histogram('umpire_confidence', ['model'], 'The probability of the selected choice.', SHARES);
  // Each series starts at zero: in one that starts with its first failure, Prometheus sees no increase.
  for (const reason of Object.keys(ERROR_TABLE)) errors.inc({ reason: reason.toLowerCase() }, 0);

  return (exchange) => {
    const { facts, startedAt } = exchange;
    const { route, protocol, fault, endedAt } = exchange.record;
    const { admittedAt, invokedAt } = exchange.times;
    requests.inc({ route, protocol, status: String(shownStatus(exchange) || 'none') });
    seconds.observe({ route, protocol }, (endedAt - startedAt) / 1000);
    // An unready replica says so to every probe, which is no failure of a request.
    if (fault !== undefined && !route.startsWith('/health/')) errors.inc({ reason: fault.code });
    const stage = (name: string, milliseconds: number): void => stages.observe({ stage: name }, milliseconds / 1000);
    if (admittedAt !== undefined) {
      stage('admission', admittedAt - startedAt);
      if (invokedAt !== undefined) stage('decode', invokedAt - admittedAt);
    }
    const store = STORE_BUDGET_MS - exchange.storeBudget.remaining;
    if (store > 0) stage('store', store);
    for (const [name, milliseconds] of Object.entries(facts.timings ?? {})) stage(name, milliseconds);
    const { model } = facts;
    if (model === undefined) return;
    tokens.inc({ model }, facts.inputTokens ?? 0);
    unread.inc({ model }, facts.unread?.over === true ? 1 : 0);
    learned.inc({ model }, facts.learned === undefined ? 0 : 1);
    const { step } = facts;
    if (step !== undefined) steps.inc({ model, step: step.model, away: step.away.length === 0 ? 'no' : 'yes' });
    choices.inc({ model }, facts.choices ?? 0);
    confidence.observe({ model }, facts.confidence ?? 0);
  };
}

// The metrics port: `GET /metrics`, at `/` a link to it, and the probes of health, which callers of the service's port
// cannot crowd out here. Probes are answered as they are there.

/** Scrapers and probes that may be connected at one time. */
const MAX_CONNECTIONS = 64;
/** Milliseconds that a request may take to arrive, and a response to be read. */
const TIMEOUT = 5000;

/** A server of a registry's counts and the state of health. */
function createMetricsServer(registry: Registry, health: Health): Server {
  const server = createServer(
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
  return server;
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
