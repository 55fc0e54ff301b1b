/** Metrics of what other parts count or measure: their values are read from there at each scrape. */
import { Counter, Gauge, type Registry } from 'prom-client';

/** One value of a metric with labels. */
export type Reading = readonly [labels: Readonly<Record<string, string>>, value: number];

/** Adds such metrics to a registry. A total is copied from its owner, which alone counts it. */
export interface Readings {
  gauge(name: string, help: string, read: () => number): void;
  gauges(name: string, help: string, labelNames: readonly string[], read: () => Iterable<Reading>): void;
  total(name: string, help: string, read: () => number): void;
  totals(name: string, help: string, labelNames: readonly string[], read: () => Iterable<Reading>): void;
}

/** Readings that are added to `registry`. */
export function readingsIn(registry: Registry): Readings {
  const readings: Readings = {
    gauge: (name, help, read) => readings.gauges(name, help, [], () => [[{}, read()]]),
    gauges(name, help, labelNames, read) {
      new Gauge({
        name,
        help,
        labelNames: [...labelNames],
        registers: [registry],
        collect() {
          this.reset();
          for (const [labels, value] of read()) this.set(labels, value);
        },
      });
    },
    total: (name, help, read) => readings.totals(name, help, [], () => [[{}, read()]]),
    totals(name, help, labelNames, read) {
      new Counter({
        name,
        help,
        labelNames: [...labelNames],
        registers: [registry],
        collect() {
          this.reset();
          for (const [labels, value] of read()) this.inc(labels, value);
        },
      });
    },
  };
  return readings;
}
