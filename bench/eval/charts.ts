/**
 * Charts in SVG: bars of the accuracy on each set, and reliability (accuracy against confidence, ideally on the
 * diagonal). They can be read on light and on dark pages.
 */
import type { ModelQuality } from './run.ts';

/** The colours of the models, in their order. */
const COLOURS = ['#1f6f8b', '#c8553d', '#588157', '#6d597a'];
const FONT = 'font-family="sans-serif" font-size="12"';

/** A group of bars for each set, and last for the mean, with a bar for each model. */
export function accuracyChart(results: readonly ModelQuality[]): string {
  const names = [...(results[0]?.sets.keys() ?? []), 'mean'];
  const [bar, gap, left, right, top] = [12, 8, 130, 50, 40];
  const group = results.length * bar + gap;
  const width = 640;
  const height = top + names.length * group + 30;
  const x = (value: number): number => left + value * (width - left - right);
  const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((tick) => [
    `<line x1="${x(tick)}" y1="${top - 6}" x2="${x(tick)}" y2="${height - 26}" stroke="#ddd"/>`,
    text(x(tick), height - 10, String(tick), 'middle'),
  ]);
  const bars = names.flatMap((name, place) => {
    const y = top + place * group;
    return [
      text(left - 8, y + (results.length * bar) / 2 + 4, name, 'end'),
      ...results.flatMap(({ sets, mean }, model) => {
        const value = (name === 'mean' ? mean : sets.get(name))?.accuracy ?? 0;
        const at = y + model * bar;
        return [
          `<rect x="${left}" y="${at}" width="${(x(value) - left).toFixed(1)}" height="${bar - 2}" fill="${colourOf(model)}"/>`,
          text(x(value) + 4, at + bar - 3, value.toFixed(2), 'start', 10),
        ];
      }),
    ];
  });
  return svg(width, height, 'Accuracy', results, [...grid, ...bars]);
}

/** A line for each model through its bins. */
export function reliabilityChart(results: readonly ModelQuality[]): string {
  const [size, left, top] = [360, 60, 40];
  const x = (value: number): string => (left + value * size).toFixed(1);
  const y = (value: number): string => (top + (1 - value) * size).toFixed(1);
  const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((tick) => [
    `<line x1="${x(0)}" y1="${y(tick)}" x2="${x(1)}" y2="${y(tick)}" stroke="#ddd"/>`,
    text(left - 8, Number(y(tick)) + 4, String(tick), 'end'),
    text(Number(x(tick)), top + size + 18, String(tick), 'middle'),
  ]);
  const lines = results.flatMap(({ bins }, model) => {
    const colour = colourOf(model);
    const points = bins.map(({ confidence, accuracy }) => `${x(confidence)},${y(accuracy)}`).join(' ');
    return [
      `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      ...bins.map(
        ({ confidence, accuracy }) => `<circle cx="${x(confidence)}" cy="${y(accuracy)}" r="3.5" fill="${colour}"/>`,
      ),
    ];
  });
  return svg(left + size + 40, top + size + 50, 'Reliability', results, [
    ...grid,
    `<line x1="${x(0)}" y1="${y(0)}" x2="${x(1)}" y2="${y(1)}" stroke="#888" stroke-dasharray="4 4"/>`,
    ...lines,
    text(left + size / 2, top + size + 40, 'confidence', 'middle'),
    `<text transform="translate(18 ${top + size / 2}) rotate(-90)" text-anchor="middle">share of right answers</text>`,
  ]);
}

function svg(
  width: number,
  height: number,
  title: string,
  results: readonly ModelQuality[],
  parts: readonly string[],
): string {
  const names = results.map(({ model }, place) => {
    const at = 150 + place * 160;
    return `<rect x="${at}" y="12" width="12" height="12" fill="${colourOf(place)}"/>${text(at + 18, 23, model, 'start')}`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ${FONT}>`,
    `<title>${title}</title>`,
    '<rect width="100%" height="100%" fill="white"/>',
    text(12, 24, title, 'start', 15),
    ...names,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

function text(x: number, y: number, content: string, anchor: string, size = 12): string {
  const escaped = content.replace(/&/g, '&amp;').replace(/</g, '&lt;');
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" font-size="${size}">${escaped}</text>`;
}

function colourOf(place: number): string {
  return COLOURS[place % COLOURS.length] as string;
}
