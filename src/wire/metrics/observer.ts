/** Counts exchanges that are over. */
import { STORE_BUDGET_MS } from '../../stores/budget.ts';
import type { Observer } from '../observer.ts';
import type { RequestMetrics } from './registry.ts';

/** Children of a metric by their labels: looking them up in the library would cost more than counting. */
function childrenOf<T>(make: (...labels: string[]) => T): (...labels: string[]) => T {
  const children = new Map<string, T>();
  return (...labels) => {
    const key = labels.length === 1 ? (labels[0] as string) : labels.join('\n');
    let child = children.get(key);
    if (child === undefined) {
      child = make(...labels);
      children.set(key, child);
    }
    return child;
  };
}

/** An observer that counts in `metrics`. */
export function createObserver(metrics: RequestMetrics): Observer {
  const requests = childrenOf((route, protocol, status) =>
    metrics.requests.labels(route as string, protocol as string, status as string),
  );
  const seconds = childrenOf((route, protocol) => metrics.seconds.labels(route as string, protocol as string));
  const stages = childrenOf((stage) => metrics.stages.labels(stage as string));
  const errors = childrenOf((reason) => metrics.errors.labels(reason as string));
  const tokens = childrenOf((model) => metrics.tokens.labels(model as string));
  const choices = childrenOf((model) => metrics.choices.labels(model as string));
  const confidence = childrenOf((model) => metrics.confidence.labels(model as string));
  return (exchange) => {
    const { route, protocol, response, reason, facts, startedAt, admittedAt, invokedAt } = exchange;
    requests(route, protocol, response.headersSent ? String(response.statusCode) : 'none').inc();
    seconds(route, protocol).observe((performance.now() - startedAt) / 1000);
    // An unready replica says so to every probe, which is no failure of a request.
    if (reason !== undefined && !route.startsWith('/health/')) errors(reason.toLowerCase()).inc();
    if (admittedAt !== undefined) {
      stages('admission').observe((admittedAt - startedAt) / 1000);
      if (invokedAt !== undefined) stages('decode').observe((invokedAt - admittedAt) / 1000);
    }
    const store = STORE_BUDGET_MS - exchange.storeBudget.remaining;
    if (store > 0) stages('store').observe(store / 1000);
    for (const stage in facts.timings) stages(stage).observe((facts.timings[stage] as number) / 1000);
    if (facts.model === undefined) return;
    tokens(facts.model).inc(facts.inputTokens ?? 0);
    choices(facts.model).inc(facts.choices ?? 0);
    confidence(facts.model).observe(facts.confidence ?? 0);
  };
}
