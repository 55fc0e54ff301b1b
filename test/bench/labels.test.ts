/** The labels of drawn charts: none lies on another, in the ones that are committed, too. */
import { readFileSync } from 'node:fs';
import test from 'ava';
import { spreadLabels } from '../../bench/report/plot.ts';
import { layLegend } from '../../scripts/check-deploy/legend.ts';

test('labels beside lines keep their order and a distance, and stay within the plot', (t) => {
  t.deepEqual(spreadLabels([10, 50, 100], 14, 300), [10, 50, 100]);
  t.deepEqual(spreadLabels([53.3, 52.9, 55.7], 14, 300), [66.9, 52.9, 80.9]);
  t.deepEqual(spreadLabels([300, 299], 14, 300), [300, 286]);
  t.deepEqual(spreadLabels([], 14, 300), []);
});

for (const file of ['tokens', 'choices']) {
  test(`${file}.svg has no two labels on each other`, (t) => {
    const svg = readFileSync(new URL(`../../bench/scaling/${file}.svg`, import.meta.url), 'utf8');
    const heights = [...svg.matchAll(/<text x="5\d\d" y="([\d.]+)" dy="4" fill/g)]
      .map(([, y]) => Number(y))
      .toSorted((a, b) => a - b);
    t.true(heights.length > 1);
    for (const [place, height] of heights.entries()) t.true(place === 0 || height - (heights[place - 1] ?? 0) >= 13.9);
  });
}

test('a legend has its entries side by side, in rows, and says how many are missing', (t) => {
  const entries = layLegend(
    Array.from({ length: 9 }, (_, i) => `remote@r1 answered ${i}`),
    250,
    2,
  );
  t.deepEqual(
    entries.map(({ row }) => row),
    [0, 1, 1],
  );
  t.is(entries.at(-1)?.text, '+7 more');
  t.deepEqual(
    layLegend(['a', 'b'], 250, 2).map(({ text }) => text),
    ['a', 'b'],
  );
  for (const [place, { left, row, text }] of entries.entries()) {
    t.true(left + text.length * 5.9 <= 250);
    const next = entries[place + 1];
    if (next?.row === row) t.true(next.left >= left + text.length * 5.9 + 12);
  }
});

test('dashboard.svg has no two entries of a legend on each other', (t) => {
  const svg = readFileSync(new URL('../../docs/dashboard.svg', import.meta.url), 'utf8');
  let entries = 0;
  for (const panel of svg.split('\n')) {
    const rows = new Map<string, { left: number; end: number }[]>();
    for (const [, x, y = '', text = ''] of panel.matchAll(
      /<circle [^>]*r="3" fill="[^"]*"\/><text x="([\d.]+)" y="([\d.]+)">([^<]*)</g,
    )) {
      entries += 1;
      rows.set(y, [...(rows.get(y) ?? []), { left: Number(x), end: Number(x) + text.length * 5.5 }]);
    }
    for (const row of rows.values()) {
      for (const [place, { left }] of row.entries())
        t.true(place === 0 || left >= (row[place - 1]?.end ?? 0), panel.slice(0, 200));
    }
  }
  t.true(entries > 20, String(entries));
});
