/** Counts exchanges in the metrics when they are over. */
import { ERROR_TABLE } from '../../domain/errors.ts';
import { STORE_BUDGET_MS } from '../../stores/budget.ts';
import type { Exchange, Observer, Protocol } from '../http/exchange.ts';
import type { RequestMetrics } from './registry.ts';
import type { Count, Distribution } from './tallies.ts';

/** What is counted for one route in one protocol. */
interface RouteCounts {
  readonly seconds: Distribution;
  /** By status, see `statusOf`. */
  readonly statuses: Map<number, Count>;
}

/** What is counted for one model. */
interface ModelCounts {
  readonly tokens: Count;
  readonly unread: Count;
  readonly learned: Count;
  readonly choices: Count;
  readonly confidence: Distribution;
}

/** The value of `key`, made when it is first asked for. */
function known<K, V>(map: Map<K, V>, key: K, make: (key: K) => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make(key);
    map.set(key, value);
  }
  return value;
}

/**
 * The HTTP status to count; for a failure over gRPC, where every status is 200, the one that REST has for it; 0 where
 * the caller left before there was one.
 */
function statusOf({ response, record: { protocol, reason } }: Exchange): number {
  if (!response.headersSent) return 0;
  return protocol === 'grpc' && reason !== undefined ? ERROR_TABLE[reason].http : response.statusCode;
}

/** An observer that counts in `metrics`. */
export function createObserver(metrics: RequestMetrics): Observer {
  const routes: Readonly<Record<Protocol, Map<string, RouteCounts>>> = {
    rest: new Map(),
    grpc: new Map(),
    connect: new Map(),
  };
  const models = new Map<string, ModelCounts>();
  const stages = new Map<string, Distribution>();
  const stage = (name: string): Distribution => known(stages, name, () => metrics.stages(name));
  const [admission, decode, stored] = [stage('admission'), stage('decode'), stage('store')];

  return (exchange) => {
    const { facts, startedAt } = exchange;
    const { route, protocol, reason, admittedAt, invokedAt, endedAt } = exchange.record;
    const { seconds, statuses } = known(routes[protocol], route, () => ({
      seconds: metrics.seconds(route, protocol),
      statuses: new Map(),
    }));
    const status = statusOf(exchange);
    known(statuses, status, () => metrics.requests(route, protocol, status === 0 ? 'none' : String(status))).value += 1;
    seconds.observe((endedAt - startedAt) / 1000);
    // An unready replica says so to every probe, which is no failure of a request.
    if (reason !== undefined && !route.startsWith('/health/')) metrics.errors(reason.toLowerCase()).value += 1;
    if (admittedAt !== undefined) {
      admission.observe((admittedAt - startedAt) / 1000);
      if (invokedAt !== undefined) decode.observe((invokedAt - admittedAt) / 1000);
    }
    const store = STORE_BUDGET_MS - exchange.storeBudget.remaining;
    if (store > 0) stored.observe(store / 1000);
    for (const name in facts.timings) stage(name).observe((facts.timings[name] as number) / 1000);
    const { model } = facts;
    if (model === undefined) return;
    const { tokens, unread, learned, choices, confidence } = known(models, model, () => ({
      tokens: metrics.tokens(model),
      unread: metrics.unread(model),
      learned: metrics.learned(model),
      choices: metrics.choices(model),
      confidence: metrics.confidence(model),
    }));
    tokens.value += facts.inputTokens ?? 0;
    if (facts.unread?.over === true) unread.value += 1;
    if (facts.learned !== undefined) learned.value += 1;
    choices.value += facts.choices ?? 0;
    confidence.observe(facts.confidence ?? 0);
  };
}
