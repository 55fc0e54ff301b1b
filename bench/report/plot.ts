/** Line plots as SVG, plain enough to read in a diff. */
import { writeFileSync } from 'node:fs';

/** One line of a plot. */
export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

// The plot's size and its margins, in pixels.
const WIDTH = 640;
const HEIGHT = 360;
const MARGIN = { left: 60, right: 130, top: 40, bottom: 50 };
/** Pixels between the lines of two labels, for the size of the font. */
const LABEL_GAP = 14;
/** The colours of the lines, in their order. */
const COLOURS = ['#1f6f8b', '#c8553d', '#588157', '#6d597a'];

/** Writes a plot with both axes from zero. */
export function writePlot(path: string, title: string, xTitle: string, yTitle: string, lines: readonly Line[]): void {
  const points = lines.flatMap((line) => line.points);
  const xMost = Math.max(...points.map(([x]) => x));
  const yMost = Math.max(...points.map(([, y]) => y)) * 1.05;
  const x = (value: number): string =>
    (MARGIN.left + (value / xMost) * (WIDTH - MARGIN.left - MARGIN.right)).toFixed(1);
  const y = (value: number): string =>
    (HEIGHT - MARGIN.bottom - (value / yMost) * (HEIGHT - MARGIN.top - MARGIN.bottom)).toFixed(1);
  const ticks = (most: number): readonly number[] => {
    const rough = most / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? rough;
    return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
  };
  const grid = [
    ...ticks(yMost).map((tick) => {
      return (
        `<line x1="${x(0)}" y1="${y(tick)}" x2="${x(xMost)}" y2="${y(tick)}" stroke="#ddd"/>` +
        `<text x="${MARGIN.left - 8}" y="${y(tick)}" dy="4" text-anchor="end">${Number(tick.toPrecision(6))}</text>`
      );
    }),
    ...ticks(xMost).map((tick) => {
      return `<text x="${x(tick)}" y="${HEIGHT - MARGIN.bottom + 18}" text-anchor="middle">${Number(tick.toPrecision(6))}</text>`;
    }),
  ];
  const ends = lines.map(({ points: own }) => Number(y(own.at(-1)?.[1] ?? 0)));
  const labels = spreadLabels(ends, LABEL_GAP, HEIGHT - MARGIN.bottom);
  const drawn = lines.flatMap(({ name, points: own }, i) => {
    const colour = COLOURS[i % COLOURS.length];
    const path = own.map(([px, py]) => `${x(px)},${y(py)}`).join(' ');
    const [lastX] = own.at(-1) ?? [0];
    return [
      `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      ...own.map(([px, py]) => `<circle cx="${x(px)}" cy="${y(py)}" r="3" fill="${colour}"/>`),
      `<text x="${Number(x(lastX)) + 8}" y="${labels[i]?.toFixed(1)}" dy="4" fill="${colour}">${name}</text>`,
    ];
  });
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${title}</title>`,
    '<rect width="100%" height="100%" fill="white"/>',
    `<text x="${MARGIN.left}" y="22" font-size="15">${title}</text>`,
    ...grid,
    `<text x="${WIDTH / 2 - 40}" y="${HEIGHT - 12}" text-anchor="middle">${xTitle}</text>`,
    `<text transform="translate(16 ${HEIGHT / 2}) rotate(-90)" text-anchor="middle">${yTitle}</text>`,
    ...drawn,
    '</svg>',
    '',
  ];
  writeFileSync(path, svg.join('\n'));
}

/**
 * The places of labels beside the ends of lines whose ideal places are `wanted`: in the same order, at least `gap`
 * apart and at most at `most`, moved no further than that needs.
 */
function spreadLabels(wanted: readonly number[], gap: number, most: number): readonly number[] {
  const order = wanted.map((_, place) => place).toSorted((a, b) => (wanted[a] as number) - (wanted[b] as number));
  const placed = [...wanted];
  let least = Number.NEGATIVE_INFINITY;
  for (const place of order) {
    placed[place] = Math.max(placed[place] as number, least);
    least = (placed[place] as number) + gap;
  }
  let bound = most;
  for (const place of order.toReversed()) {
    placed[place] = Math.min(placed[place] as number, bound);
    bound = (placed[place] as number) - gap;
  }
  return placed;
}
