/** Tallies print what the library's own counters and histograms print of the same values. */
import test from 'ava';
import { Counter, Histogram, Registry } from 'prom-client';
import { addCounts, addDistributions } from '../../../src/wire/metrics/tallies.ts';

const LABELS = [
  ['/v1/decisions', 'rest'],
  ['/v1/models', 'rest'],
  ['odd "quoted"\nroute\\', 'grpc'],
] as const;

test('a histogram', async (t) => {
  const definition = { name: 'seconds', help: 'How long.', labelNames: ['route', 'protocol'] };
  const bounds = [0.001, 0.25, 1, 10];
  const [ours, theirs] = [new Registry(), new Registry()];
  const tallied = addDistributions(ours, { ...definition, bounds });
  const library = new Histogram({ ...definition, buckets: bounds, registers: [theirs] });
  for (const [place, [route, protocol]] of LABELS.entries()) {
    for (const value of [0, 0.001, 0.0011, 0.2, 0.25, 1, 9.75, 10.5, 1e6].slice(place)) {
      tallied(route, protocol).observe(value);
      library.observe({ route, protocol }, value);
    }
  }
  t.is(await ours.metrics(), await theirs.metrics());
});

test('a counter', async (t) => {
  const definition = { name: 'requests_total', help: 'How many.', labelNames: ['route', 'protocol'] };
  const [ours, theirs] = [new Registry(), new Registry()];
  const tallied = addCounts(ours, definition);
  const library = new Counter({ ...definition, registers: [theirs] });
  for (const [place, [route, protocol]] of LABELS.entries()) {
    for (const amount of [1, 2.5, 0].slice(place)) {
      tallied(route, protocol).value += amount;
      library.inc({ route, protocol }, amount);
    }
    // Reading changes nothing.
    t.is(await ours.metrics(), await theirs.metrics());
  }
  t.is(await ours.metrics(), await theirs.metrics());
});
