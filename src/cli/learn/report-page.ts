/**
 * The quality of answers, as `umpire evaluate` shows it: lines for a terminal, and the page of `--report`,
 * self-contained HTML with three charts in SVG.
 */
import { type AnswerQuality, type JudgedAnswer, reliabilityOf, type Share } from '../../learning/quality.ts';
import { visible } from '../../visible.ts';

/** What the page shows. */
export interface Report {
  readonly title: string;
  readonly quality: AnswerQuality;
  readonly answers: readonly JudgedAnswer[];
  readonly choices: readonly string[];
}

/** Pixels of a side of a chart's plotting area. */
const SIZE = 320;
/** The page's style sheet, within the page, since it loads nothing. */
const STYLE =
  'body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}table{border-collapse:collapse}td,th{padding:.2rem .7rem;text-align:left;border-bottom:1px solid #ddd}svg{max-width:100%}';

/** The report as one HTML document that loads nothing else. */
export function reportPage({ title, quality, answers, choices }: Report): string {
  const rows = quality.thresholds.map(({ target, threshold, coverage, accuracy }) =>
    threshold === undefined || coverage === undefined || accuracy === undefined
      ? [percent(target), 'no confidence is enough', '', '']
      : [
          percent(target),
          threshold.toFixed(3),
          percent(coverage),
          `${percent(accuracy.share)} (${percent(accuracy.low)} to ${percent(accuracy.high)})`,
        ],
  );
  const confusions = quality.confusions.map(({ label, choice, count }) => [label, choice, String(count)]);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escaped(title)}</title><style>${STYLE}</style></head><body>
<h1>${escaped(title)}</h1>
<p>${quality.answers} examples. ${figureLines(quality).map(escaped).join('; ')}.</p>
<h2>When to act on an answer</h2>
${table(['To be right', 'Act at or above', 'Share of texts', 'Right there'], rows)}
<h2>Reliability</h2><p>Answers by their confidence, and how many of them are right. On the line, a confidence means what it says.</p>
${chart(
  'confidence',
  'right answers',
  reliabilityOf(answers).map(({ confidence, accuracy }) => [confidence, accuracy] as const),
  true,
)}
<h2>Coverage</h2><p>How many of the surest answers are right, by their share of all texts.</p>
${chart('share of texts', 'right answers', coverage(answers), false)}
<h2>Taken for each other</h2>
${table(['Label', 'Answer', 'Texts'], confusions)}
<h2>Confusion matrix</h2><p>A row for each label, a column for each answer, in the order of the choices.</p>
${matrix(answers, choices)}
</body></html>
`;
}

/** Points of the coverage chart, about a hundred: a share of the texts, the surest first, and its accuracy. */
function coverage(answers: readonly JudgedAnswer[]): readonly (readonly [number, number])[] {
  const sorted = answers.toSorted((a, b) => b.confidence - a.confidence);
  const step = Math.max(1, Math.floor(sorted.length / 100));
  let right = 0;
  return sorted.flatMap(({ label, choice }, i) => {
    if (label === choice) right++;
    return (i + 1) % step === 0 ? [[(i + 1) / sorted.length, right / (i + 1)] as const] : [];
  });
}

function chart(x: string, y: string, points: readonly (readonly [number, number])[], diagonal: boolean): string {
  const at = ([a, b]: readonly [number, number]): string =>
    `${(40 + a * SIZE).toFixed(1)},${(10 + (1 - b) * SIZE).toFixed(1)}`;
  const end = 40 + SIZE;
  const foot = 10 + SIZE;
  return `<svg role="img" aria-label="${y} by ${x}" width="${SIZE + 70}" height="${SIZE + 60}" font-size="12" fill="#333">
<path d="M40 10V${foot}H${end}" fill="none" stroke="#999"/>${diagonal ? `<path d="M40 ${foot}L${end} 10" stroke="#bbb" stroke-dasharray="4"/>` : ''}
<polyline points="${points.map(at).join(' ')}" fill="none" stroke="#1f6feb" stroke-width="2"/>
${diagonal ? points.map((point) => `<circle cx="${at(point).split(',')[0]}" cy="${at(point).split(',')[1]}" r="3" fill="#1f6feb"/>`).join('') : ''}
<text x="36" y="${foot + 16}" text-anchor="middle">0</text><text x="${end}" y="${foot + 16}" text-anchor="middle">1</text><text x="30" y="16" text-anchor="end">1</text>
<text x="${40 + SIZE / 2}" y="${foot + 34}" text-anchor="middle">${x}</text><text x="46" y="24">${y}</text></svg>`;
}

function matrix(answers: readonly JudgedAnswer[], choices: readonly string[]): string {
  const places = new Map(choices.map((choice, place) => [choice, place]));
  const counts = new Map<string, number>();
  for (const { label, choice } of answers) {
    const cell = `${places.get(label)},${places.get(choice)}`;
    counts.set(cell, (counts.get(cell) ?? 0) + 1);
  }
  const asked = choices.map((choice) => answers.filter(({ label }) => label === choice).length);
  const side = Math.max(3, Math.min(24, Math.floor(800 / choices.length)));
  const cells = [...counts].map(([cell, count]) => {
    const [row = 0, column = 0] = cell.split(',').map(Number);
    const names = `${choices[row]} answered ${choices[column]}: ${count}`;
    const colour = row === column ? '31,111,235' : '207,34,46';
    return `<rect x="${column * side}" y="${row * side}" width="${side}" height="${side}" fill="rgba(${colour},${(0.15 + 0.85 * (count / (asked[row] ?? 1))).toFixed(2)})"><title>${escaped(names)}</title></rect>`;
  });
  const size = side * choices.length;
  return `<svg role="img" aria-label="confusion matrix" width="${size}" height="${size}" style="border:1px solid #ccc">${cells.join('')}</svg>
<ol>${choices.map((choice) => `<li>${escaped(choice)}</li>`).join('')}</ol>`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '<p>None.</p>';
  const line = (cells: readonly string[], name: string): string =>
    `<tr>${cells.map((cell) => `<${name}>${escaped(cell)}</${name}>`).join('')}</tr>`;
  return `<table>${line(head, 'th')}${rows.map((row) => line(row, 'td')).join('')}</table>`;
}

function escaped(text: string): string {
  return visible(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** A share as `81.3 %`. */
export function percent(value: number): string {
  return `${(100 * value).toFixed(1)} %`;
}

/** A share with its interval, as `81.3 % (95 % interval 78.0 to 84.2 %)`. */
function interval({ share, low, high }: Share): string {
  return `${percent(share)} (95 % interval ${(100 * low).toFixed(1)} to ${percent(high)})`;
}

/** Accuracy, macro-F1, log loss and calibration error, in two lines. */
export function figureLines({ accuracy, macroF1, logLoss, ece }: AnswerQuality): readonly string[] {
  return [
    `right answers: ${interval(accuracy)}`,
    `macro-F1 ${macroF1.toFixed(3)}, log loss ${logLoss.toFixed(4)}, calibration error (ECE) ${ece.toFixed(3)}`,
  ];
}

/** The table of thresholds: for each target accuracy, the lowest confidence at which it is reached. */
export function thresholdLines({ thresholds }: AnswerQuality): readonly string[] {
  return [
    'to be right  act at or above  share of texts  right there',
    ...thresholds.map(({ target, threshold, coverage, accuracy }) => {
      const head = percent(target).padEnd(13);
      if (threshold === undefined || coverage === undefined || accuracy === undefined)
        return `${head}no confidence is enough`;
      return `${head}${threshold.toFixed(3).padEnd(17)}${percent(coverage).padEnd(16)}${interval(accuracy)}`;
    }),
  ];
}

/** Choices that `choiceLines` shows at most. */
const ROWS = 20;

/** A line for each choice, those with the most mistakes first: how often it is missed, and wrongly answered. */
export function choiceLines({ choices }: AnswerQuality): readonly string[] {
  const said = (share: Share | undefined, of: number): string =>
    share === undefined ? 'no such text' : `${Math.round(share.share * of)} of ${of}, ${percent(share.share)}`;
  const left = choices.length - ROWS;
  return [
    'missed                wrongly answered      choice',
    ...choices
      .slice(0, ROWS)
      .map(
        ({ choice, texts, missed, wrongly, others }) =>
          `${said(missed, texts).padEnd(22)}${said(wrongly, others).padEnd(22)}${JSON.stringify(choice)}`,
      ),
    ...(left > 0 ? [`and ${left} choices with fewer mistakes`] : []),
  ];
}
