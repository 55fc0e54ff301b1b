/** Draws a dashboard's panels as one SVG: plainly, but with what Grafana would show of the same answers. */
import { layLegend } from './legend.ts';

/** One line, band or row of a panel. */
export interface Series {
  readonly name: string;
  /** Times in seconds since the epoch, with their values; values that are not finite are left out. */
  readonly points: readonly (readonly [at: number, value: number])[];
}

/** A panel with its answers. */
export interface DrawnPanel {
  readonly type: string;
  readonly title: string;
  readonly unit: string;
  readonly stacked: boolean;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly series: readonly Series[];
}

/** Pixels of a column of Grafana's grid, which has 24. */
const COLUMN = 48;
/** Pixels of a row of that grid. */
const ROW = 22;
const COLOURS = [
  '#1f6f8b',
  '#c8553d',
  '#588157',
  '#6d597a',
  '#d4a017',
  '#3d5a80',
  '#a44a3f',
  '#7a9e7e',
  '#555',
  '#b56576',
];

/** Draws all panels for the time from `start` to `end`, in seconds since the epoch. */
export function drawDashboard(title: string, panels: readonly DrawnPanel[], start: number, end: number): string {
  const height = Math.max(...panels.map(({ gridPos }) => gridPos.y + gridPos.h)) * ROW + 40;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${24 * COLUMN + 20} ${height}" font-family="sans-serif" font-size="10" fill="#333">`,
    `<title>${markup(title)}</title>`,
    '<rect width="100%" height="100%" fill="#f4f5f6"/>',
    `<text x="14" y="24" font-size="16">${markup(title)}</text>`,
    ...panels.map((panel) => {
      const { x, y, w, h } = panel.gridPos;
      const body =
        panel.type === 'row'
          ? `<text x="4" y="16" font-size="13" font-weight="bold">${markup(panel.title)}</text>`
          : drawPanel(panel, w * COLUMN - 8, h * ROW - 8, start, end);
      return `<g transform="translate(${x * COLUMN + 14} ${y * ROW + 36})">${body}</g>`;
    }),
    '</svg>',
    '',
  ].join('\n');
}

function drawPanel(panel: DrawnPanel, width: number, height: number, start: number, end: number): string {
  const frame = `<rect width="${width}" height="${height}" rx="3" fill="white" stroke="#ddd"/><text x="8" y="15" font-size="11">${markup(panel.title)}</text>`;
  if (panel.type === 'stat') {
    const last = panel.series[0]?.points.at(-1)?.[1] ?? Number.NaN;
    return `${frame}<text x="${width / 2}" y="${height / 2 + 16}" font-size="24" text-anchor="middle">${format(last, panel.unit)}</text>`;
  }
  const plot = { left: 52, top: 24, width: width - 62, height: height - (panel.type === 'heatmap' ? 44 : 65) };
  const x = (at: number): number => Math.round((plot.left + ((at - start) / (end - start)) * plot.width) * 10) / 10;
  const times = [start, (start + end) / 2, end].map(
    (at) =>
      `<text x="${x(at)}" y="${plot.top + plot.height + 12}" text-anchor="middle" fill="#777">${Math.round(at - start)} s</text>`,
  );
  const body = panel.type === 'heatmap' ? drawHeatmap(panel, plot, x) : drawLines(panel, plot, x);
  return `${frame}${times.join('')}${body}`;
}

/** Rows of a panel's legend. */
const LEGEND_ROWS = 2;

interface Plot {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

function drawLines({ series, unit, stacked }: DrawnPanel, plot: Plot, x: (at: number) => number): string {
  const below = new Map<number, number>();
  const drawn = series.map(({ name, points }) => ({
    name,
    points: points.map(([at, value]) => {
      const base = stacked ? (below.get(at) ?? 0) : 0;
      below.set(at, base + value);
      return { at, base, top: base + value };
    }),
  }));
  const most = (Math.max(0, ...drawn.flatMap(({ points }) => points.map(({ top }) => top))) || 1) * 1.05;
  const y = (value: number): number => Math.round((plot.top + plot.height * (1 - value / most)) * 10) / 10;
  const grid = [0, 0.5, 1].map((share) => {
    const at = y(share * most);
    return `<line x1="${plot.left}" x2="${plot.left + plot.width}" y1="${at}" y2="${at}" stroke="#eee"/><text x="${plot.left - 5}" y="${at + 3}" text-anchor="end" fill="#777">${format(share * most, unit)}</text>`;
  });
  const lines = drawn.map(({ points }, i) => {
    const colour = COLOURS[i % COLOURS.length];
    const line = points.map(({ at, top }) => `${x(at)},${y(top)}`).join(' ');
    const floor = stacked
      ? [...points]
          .reverse()
          .map(({ at, base }) => `${x(at)},${y(base)}`)
          .join(' ')
      : '';
    const area = stacked ? `<polygon points="${line} ${floor}" fill="${colour}" opacity="0.35"/>` : '';
    return `${area}<polyline points="${line}" fill="none" stroke="${colour}" stroke-width="1.3"/>`;
  });
  const legend = layLegend(
    drawn.map(({ name }) => name),
    plot.left + plot.width - 8,
    LEGEND_ROWS,
  ).map(({ text, series: place, left, row }) => {
    const at = Math.round((left + 12) * 10) / 10;
    const under = plot.top + plot.height + 25 + row * 11;
    if (place === undefined) return `<text x="${at}" y="${under}" fill="#777">${text}</text>`;
    return `<circle cx="${at}" cy="${under - 3}" r="3" fill="${COLOURS[place % COLOURS.length]}"/><text x="${at + 6}" y="${under}">${markup(text)}</text>`;
  });
  return [...grid, ...lines, ...legend].join('');
}

/** Draws a heatmap. Buckets count everything below their bound, so a row is the difference from the one before. */
function drawHeatmap({ series, unit }: DrawnPanel, plot: Plot, x: (at: number) => number): string {
  const bounds = [...series].sort((a, b) => boundOf(a) - boundOf(b));
  const rows = bounds.map(({ points }, i) => {
    const under = new Map(bounds[i - 1]?.points ?? []);
    return points.map(([at, value]) => [at, Math.max(0, value - (under.get(at) ?? 0))] as const);
  });
  const most = Math.max(1e-9, ...rows.flatMap((points) => points.map(([, count]) => count)));
  const height = plot.height / rows.length;
  const step = (bounds[0]?.points[1]?.[0] ?? 1) - (bounds[0]?.points[0]?.[0] ?? 0);
  const width = Math.round((x(step) - x(0)) * 10) / 10;
  return rows
    .flatMap((points, i) => {
      const y = Math.round((plot.top + plot.height - (i + 1) * height) * 10) / 10;
      const label = `<text x="${plot.left - 5}" y="${y + height / 2 + 3}" text-anchor="end" font-size="8" fill="#777">${format(boundOf(bounds[i]), unit)}</text>`;
      const cells = points
        .filter(([at, count]) => count > 0 && x(at) < plot.left + plot.width)
        .map(([at, count]) => {
          const opacity = Math.round(Math.sqrt(count / most) * 100) / 100;
          return `<rect x="${x(at)}" y="${y}" width="${width}" height="${height.toFixed(1)}" fill="#c8553d" opacity="${opacity}"/>`;
        });
      return [label, ...cells];
    })
    .join('');
}

const boundOf = (series: Series | undefined): number => (series?.name === '+Inf' ? Infinity : Number(series?.name));

function format(value: number, unit: string): string {
  if (value === Infinity) return '∞';
  const short = (number: number): string => String(Number(number.toPrecision(3)));
  if (unit === 'percentunit') return `${short(value * 100)} %`;
  if (unit === 'bytes') return `${Math.round(value / 2 ** 20)} MiB`;
  if (unit === 's') return value < 1 ? `${short(value * 1000)} ms` : `${short(value)} s`;
  return unit === 'reqps' || unit === 'ops' ? `${short(value)}/s` : short(value);
}

function markup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
