/** Metrics as one part: what counts requests, and the port where the counts are read. */
import { Registry } from 'prom-client';
import type { Health } from '../health.ts';
import type { Observer } from '../http/exchange.ts';
import { addHoldingMetrics, type HoldingSources } from './holdings.ts';
import { addInferenceMetrics } from './inference.ts';
import { createMetricsListener, type MetricsListener } from './listener.ts';
import { createObserver } from './observer.ts';
import { addStateMetrics, createRequestMetrics, type StateSources } from './registry.ts';

/** The port of the metrics, and the observer that counts exchanges for it. */
export interface Metrics extends MetricsListener {
  readonly observe: Observer;
}

/** Metrics of a service. Nothing listens until `listen`. */
export function createMetrics(sources: StateSources & HoldingSources & { readonly health: Health }): Metrics {
  const registry = new Registry();
  const observe = createObserver(createRequestMetrics(registry));
  addStateMetrics(registry, sources);
  addHoldingMetrics(registry, sources);
  addInferenceMetrics(registry, sources.engine);
  return { ...createMetricsListener(registry, sources.health), observe };
}
