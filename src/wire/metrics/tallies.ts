/**
 * Counters and histograms that cost a request next to nothing: each set of label values is looked up once and then
 * counted in plain numbers, which prom-client reads at each scrape. Its own `observe` and `inc` look their labels up in
 * every call.
 */
import type { Histogram, Registry } from 'prom-client';
import { readingsIn } from './readings.ts';

/** A number that only grows. */
export interface Count {
  value: number;
}

/** Counts observed values by the buckets that they fall into: a histogram. */
export interface Distribution {
  observe(value: number): void;
}

/** The part of a metric that has these label values, made when it is first asked for. */
export type Labelled<T> = (...values: readonly string[]) => T;

interface Definition {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/** A counter in `registry`. */
export function addCounts(registry: Registry, { name, help, labelNames }: Definition): Labelled<Count> {
  const { of, parts } = labelled(labelNames, (): Count => ({ value: 0 }));
  readingsIn(registry).totals(name, help, labelNames, () => parts.map(({ labels, part }) => [labels, part.value]));
  return of;
}

/** A histogram in `registry` with these upper bounds, in ascending order. */
export function addDistributions(
  registry: Registry,
  { name, help, labelNames, bounds }: Definition & { readonly bounds: readonly number[] },
): Labelled<Distribution> {
  const { of, parts } = labelled(labelNames, () => createDistribution(bounds));
  // The members that a registry needs of a metric.
  const metric = {
    name,
    async get() {
      const values = parts.flatMap(({ labels, part }) => samples(name, labels, bounds, part));
      return { name, help, type: 'histogram', aggregator: 'sum', values };
    },
    reset() {},
  };
  registry.registerMetric(metric as unknown as Histogram);
  return of;
}

interface Counted extends Distribution {
  /** How many values are up to each bound and above the one before; the last counts those above all bounds. */
  readonly counts: Float64Array;
  sum: number;
}

function createDistribution(bounds: readonly number[]): Counted {
  const counts = new Float64Array(bounds.length + 1);
  return {
    counts,
    sum: 0,
    observe(value) {
      let place = 0;
      while (place < bounds.length && value > (bounds[place] as number)) place += 1;
      counts[place] = (counts[place] as number) + 1;
      this.sum += value;
    },
  };
}

type Labels = Readonly<Record<string, string>>;

interface Sample {
  readonly metricName: string;
  readonly labels: Labels | Readonly<Record<string, string | number>>;
  readonly value: number;
}

function samples(name: string, labels: Labels, bounds: readonly number[], { counts, sum }: Counted): readonly Sample[] {
  let total = 0;
  const buckets = [...bounds, '+Inf'].map((le, place): Sample => {
    total += counts[place] as number;
    return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ];
}

function labelled<T>(
  names: readonly string[],
  make: () => T,
): { readonly of: Labelled<T>; readonly parts: readonly { readonly labels: Labels; readonly part: T }[] } {
  const known = new Map<string, T>();
  const parts: { readonly labels: Labels; readonly part: T }[] = [];
  return {
    parts,
    of(...values) {
      const key = values.length === 1 ? (values[0] as string) : values.join('\n');
      let part = known.get(key);
      if (part === undefined) {
        part = make();
        known.set(key, part);
        parts.push({ labels: Object.fromEntries(names.map((name, place) => [name, values[place] as string])), part });
      }
      return part;
    },
  };
}
