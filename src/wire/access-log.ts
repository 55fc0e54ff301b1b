/** One log line for each request: what was asked for and how it went, never a key, an input or a choice. */
import type { Logger } from '../logger.ts';
import type { Exchange, Observer } from './http/exchange.ts';
import { shownStatus } from './http/response.ts';

/** How many characters of a caller's own `X-Request-ID` are logged; pino escapes them. */
const MAX_FOREIGN_ID = 128;
const MAX_METHOD = 16;

/** Writes the line of each exchange. A probe of health that says what the last one said is told at `debug`. */
export class AccessLog {
  readonly #logger: Logger;
  readonly #probed = new Map<string, number>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  readonly observe: Observer = (exchange) => {
    const { route, fault } = exchange.record;
    const status = shownStatus(exchange);
    const isProbe = route.startsWith('/health/');
    const isOld = isProbe && this.#probed.get(route) === status;
    if (isProbe) this.#probed.set(route, status);
    const line = lineOf(exchange, status);
    const isOwn = fault?.reason === 'INTERNAL' || fault?.reason === 'STORAGE_CORRUPT';
    if (isOwn) this.#logger.error({ ...line, err: fault.cause }, 'request');
    else this.#logger[isOld ? 'debug' : 'info'](line, 'request');
  };
}

function lineOf(exchange: Exchange, status: number): object {
  const { request, facts, caller, record } = exchange;
  const { fault, trace } = record;
  const foreignId = request.headers['x-request-id'];
  return {
    requestId: exchange.requestId,
    protocol: record.protocol,
    // Over HTTP/2 a method can be any word of any length.
    method: request.method?.slice(0, MAX_METHOD),
    route: record.route,
    status,
    reason: fault?.reason,
    cause: fault?.reason === 'STORE_UNAVAILABLE' ? (fault.cause as Error | undefined)?.message : undefined,
    givenUp: record.givenUp,
    durationMs: round(performance.now() - exchange.startedAt),
    caller: caller.kind,
    owner: caller.kind === 'key' ? caller.owner : undefined,
    model: facts.model,
    inputTokens: facts.inputTokens,
    unreadShare: facts.unread === undefined ? undefined : round(facts.unread.share),
    choices: facts.choices,
    learned: facts.learned,
    step: facts.step?.model,
    away: facts.step?.away.length === 0 ? undefined : facts.step?.away,
    timings: facts.timings === undefined ? undefined : rounded(facts.timings),
    trace_id: trace?.traceId,
    span_id: trace?.spanId,
    callerRequestId: typeof foreignId === 'string' ? foreignId.slice(0, MAX_FOREIGN_ID) : undefined,
  };
}

/** To two decimals. */
function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function rounded(timings: Readonly<Record<string, number>>): Record<string, number> {
  const result: Record<string, number> = {};
  for (const stage in timings) result[stage] = round(timings[stage] as number);
  return result;
}
