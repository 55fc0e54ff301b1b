/** Metrics as one part: what counts requests, and the port where the counts are read. */
import { Registry } from 'prom-client';
import type { Engine } from '../../engine/engine.ts';
import type { StoreHealth } from '../../stores/create-stores.ts';
import { createMetricsListener, type MetricsListener } from './listener.ts';
import { createObserver, type Observer } from './observer.ts';
import { addStateMetrics, createRequestMetrics } from './registry.ts';

export interface Metrics extends MetricsListener {
  readonly observe: Observer;
}

/** Metrics of a service. Nothing listens until `listen`. */
export function createMetrics(engine: Engine, store: () => StoreHealth): Metrics {
  const registry = new Registry();
  const observe = createObserver(createRequestMetrics(registry));
  addStateMetrics(registry, engine, store);
  return { ...createMetricsListener(registry), observe };
}
