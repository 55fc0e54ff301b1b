/**
 * What a span says of its exchange, and where the exchange's time went. Attributes are in the words of OpenTelemetry's
 * semantic conventions. Every value is bounded in length, and none is an input, a choice, a key, an owner or a catalog;
 * a path may hold a catalog's id, so only its template is recorded. For gRPC and Connect the attributes that the
 * conventions had before those for RPC became stable are set as well.
 */
import { ERROR_TABLE, type StatusName } from '../../domain/errors.ts';
import type { Exchange, Protocol } from '../http/exchange.ts';
import { STATUS_NUMBERS } from '../http/response.ts';

/** The attributes of a span, by the names of the conventions. */
export type Attributes = Record<string, string | number>;

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY']);

/** Of the statuses of RPCs, those that the conventions count as a server's failure. */
const SERVER_FAULTS: ReadonlySet<StatusName> = new Set([
  'DEADLINE_EXCEEDED',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
]);

/**
 * `POST /v1/decisions`, or `umpire.v1.DecisionService/CreateDecision`; without a route, the method or the protocol
 * alone.
 */
export function spanName(exchange: Exchange): string {
  const { protocol, route } = exchange.record;
  const matched = route !== 'unmatched';
  if (protocol !== 'rest') return matched ? route.slice(1) : systemOf(protocol);
  const method = knownMethod(exchange) ?? 'HTTP';
  return matched ? `${method} ${route}` : method;
}

/** The span's attributes. `scheme`: http or https, as the port speaks. */
export function attributesOf(exchange: Exchange, scheme: string): Attributes {
  const { facts, request, record } = exchange;
  const { fault } = record;
  const attributes: Attributes = {
    'network.protocol.version': request.httpVersion === '2.0' ? '2' : request.httpVersion,
    'umpire.request_id': exchange.requestId,
    'umpire.caller': exchange.caller.kind,
  };
  if (record.protocol === 'rest') describeHttp(attributes, exchange, scheme);
  else describeRpc(attributes, exchange);
  if (fault !== undefined) attributes['umpire.error_code'] = fault.code;
  if (isServerFault(exchange) && fault !== undefined) attributes['error.type'] = fault.code;
  if (facts.model !== undefined) attributes['umpire.model'] = facts.model;
  if (facts.choices !== undefined) attributes['umpire.choices'] = facts.choices;
  if (facts.learned !== undefined) attributes['umpire.learned'] = facts.learned;
  if (facts.step !== undefined) attributes['umpire.step'] = facts.step.model;
  if (facts.step !== undefined && facts.step.away.length > 0)
    attributes['umpire.steps_away'] = facts.step.away.join(', ');
  if (facts.inputTokens !== undefined) attributes['umpire.input_tokens'] = facts.inputTokens;
  if (facts.unread !== undefined) attributes['umpire.unread_share'] = facts.unread.share;
  return attributes;
}

/**
 * Whether the exchange failed by the server's fault rather than its caller's, as each protocol's conventions see it.
 */
export function isServerFault({ record: { protocol, fault } }: Exchange): boolean {
  if (fault === undefined) return false;
  const { http, status } = ERROR_TABLE[fault.reason];
  return protocol === 'rest' ? http >= 500 : SERVER_FAULTS.has(status);
}

function describeHttp(attributes: Attributes, exchange: Exchange, scheme: string): void {
  const { response } = exchange;
  const { route } = exchange.record;
  attributes['http.request.method'] = knownMethod(exchange) ?? '_OTHER';
  attributes['url.scheme'] = scheme;
  if (route !== 'unmatched') attributes['http.route'] = route;
  if (response.headersSent) attributes['http.response.status_code'] = response.statusCode;
}

function describeRpc(attributes: Attributes, { record: { protocol, route, fault } }: Exchange): void {
  const status = fault === undefined ? undefined : ERROR_TABLE[fault.reason].status;
  attributes['rpc.system.name'] = systemOf(protocol);
  attributes['rpc.system'] = protocol === 'grpc' ? 'grpc' : 'connect_rpc';
  attributes['rpc.status_code'] = protocol === 'grpc' ? (status ?? 'OK') : (connectCode(status) ?? 'ok');
  if (protocol === 'grpc') attributes['rpc.grpc.status_code'] = status === undefined ? 0 : STATUS_NUMBERS[status];
  else if (status !== undefined) attributes['rpc.connect_rpc.error_code'] = connectCode(status) as string;
  if (route === 'unmatched') {
    attributes['rpc.method'] = '_OTHER';
    return;
  }
  attributes['rpc.method'] = route.slice(1);
  attributes['rpc.service'] = route.slice(1, route.lastIndexOf('/'));
}

/** Connect's name of a status: in lower case, and without the second l of CANCELLED. */
function connectCode(status: StatusName | undefined): string | undefined {
  return status === 'CANCELLED' ? 'canceled' : status?.toLowerCase();
}

function systemOf(protocol: Protocol): string {
  return protocol === 'grpc' ? 'grpc' : 'connectrpc';
}

/** The method if it is a known one: over HTTP/2 it can be any word of any length. */
function knownMethod({ request }: Exchange): string | undefined {
  return METHODS.has(request.method ?? '') ? request.method : undefined;
}

/** A stage; times in milliseconds on the clock of `performance.now()`. The stages in it lie within it. */
export interface Stage {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly inner: readonly Stage[];
}

/**
 * The stages of an exchange that is over, by the names that its metrics and its log line have. Engines report how long
 * each of their stages took, not when: the rest of the time that the decision was with them is counted as messages
 * there and back, half for each.
 */
export function stagesOf(exchange: Exchange): readonly Stage[] {
  const { startedAt } = exchange;
  const { endedAt } = exchange.record;
  const { admittedAt, invokedAt, engineSince, engineUntil } = exchange.times;
  const within = (name: string, start: number, end: number): Stage => ({
    name,
    start: clamp(start, startedAt, endedAt),
    end: clamp(end, startedAt, endedAt),
    inner: [],
  });
  const calls = exchange.storeBudget.calls.map(({ start, end }) => within('store', start, end));
  const stages: Stage[] = [];
  if (admittedAt !== undefined) {
    const admission = within('admission', startedAt, admittedAt);
    stages.push({ ...admission, inner: calls.filter(({ end }) => end <= admission.end) });
    stages.push(within('decode', admittedAt, invokedAt ?? endedAt));
  }
  stages.push(...calls.filter(({ end }) => admittedAt === undefined || end > admittedAt));
  if (engineSince !== undefined) {
    const engine = within('engine', engineSince, engineUntil ?? endedAt);
    stages.push({ ...engine, inner: engineStages(engine, exchange.facts.timings) });
  }
  return stages;
}

function engineStages(engine: Stage, timings: Readonly<Record<string, number>> | undefined): readonly Stage[] {
  if (timings === undefined) return [];
  const { queue = 0, tokenize = 0, infer = 0 } = timings;
  const messages = Math.max(0, engine.end - engine.start - queue - tokenize - infer);
  let now = engine.start;
  const next = (name: string, milliseconds: number): Stage => {
    const start = now;
    now = Math.min(engine.end, now + milliseconds);
    return { name, start, end: now, inner: [] };
  };
  const waited = next('queue', queue);
  now += messages / 2;
  return [waited, next('tokenize', tokenize), next('infer', infer)];
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}
