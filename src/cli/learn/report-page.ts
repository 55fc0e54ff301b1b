/**
 * The quality of answers, as `umpire evaluate` shows it: lines for a terminal, and the page of `--report`,
 * self-contained HTML for somebody who decides whether to rely on the answers.
 */
import type { Cheapest } from '../../learning/costs.ts';
import {
  type AnswerQuality,
  type JudgedAnswer,
  LEAST_ABOVE,
  reliabilityOf,
  type Share,
  type Threshold,
} from '../../learning/quality.ts';
import { visible } from '../../visible.ts';
import type { Example } from './examples.ts';

/** What the page shows. */
export interface Report {
  /** The catalog; undefined for choices without one. */
  readonly catalog: string | undefined;
  readonly model: string;
  /** The file of the examples. */
  readonly file: string;
  readonly date: Date;
  readonly quality: AnswerQuality;
  readonly answers: readonly JudgedAnswer[];
  /** Those that were answered, in the same order. */
  readonly examples: readonly Example[];
  /** What costs least; undefined where no costs are known. */
  readonly cheapest: Cheapest | undefined;
}

/** Pixels of a side of the chart's plotting area. */
const SIZE = 300;
/** Choices up to which all answers fit into one table. */
const MOST_IN_MATRIX = 12;
/** The page's style sheet, within the page, since it loads nothing. */
const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff;overflow-wrap:anywhere}h1{line-height:1.2}div{overflow-x:auto}li{margin-left:-1.2rem}table{border-collapse:collapse;overflow-wrap:normal}td,th{padding:.25rem .8rem .25rem 0;text-align:left;vertical-align:top;border-bottom:1px solid #ddd}svg{max-width:100%;height:auto}.facts{color:#555}.main{font-size:1.15em}@media(max-width:40rem){td,th{font-size:.85em;padding-right:.5rem}}';

/** The report as one HTML document that loads nothing else. */
export function reportPage(report: Report): string {
  const { catalog, model, file, date, quality, answers, examples, cheapest } = report;
  const { answers: count, accuracy, thresholds, choices, confusions } = quality;
  const questions = [...new Set(examples.map(({ instruction }) => instruction))];
  const title = catalog === undefined ? 'How good the answers are' : `How good the answers of ${catalog} are`;
  const bins = reliabilityOf(answers, Math.max(2, Math.min(10, Math.floor(count / LEAST_ABOVE))));
  const names = choices.map(({ choice }) => choice).toSorted();
  const rightOf = (hits: number, of: number, { low, high }: Share): string =>
    `${hits} of ${of} (${whole(low)} to ${percent(high)})`;
  const page = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escaped(title)}</title><style>${STYLE}</style></head><body>
<h1>${escaped(title)}</h1>
<p class="facts">${date.toISOString().slice(0, 10)}. ${count} texts of ${escaped(file)}, whose right answers are known, decided with ${escaped(model)}. ${escaped(questions.length === 1 ? `Question: ${questions[0]}` : `${questions.length} questions.`)}</p>
<p class="main">Of ${count} texts, ${hitsOf(accuracy, count)} got the right answer: ${percent(accuracy.share)}. From ${count} texts it follows that of all such texts between ${whole(accuracy.low)} and ${percent(accuracy.high)} are likely to be answered right. ${escaped(likeliest(choices, count))}</p>
<p class="main">${advice(thresholds, count)}</p>
<h2>When to act on an answer</h2>
<p>Each answer has a confidence from 0 to 1. The higher the confidence from which on you act, the more answers are right there, and the more texts a person has to read.</p>
${table(
  ['To be right', 'Act from', 'Acted on', 'For a person', 'Right of those acted on (95 % interval)'],
  thresholds.map(({ target, found }) => {
    if (found === undefined) return [percent(target), 'never', '0', String(count), ''];
    const acted = Math.round(found.coverage * count);
    const right = rightOf(hitsOf(found.accuracy, acted), acted, found.accuracy);
    return [percent(target), found.threshold.toFixed(3), acted, count - acted, right];
  }),
)}
${cheapest === undefined ? '' : costs(cheapest)}<h2>Each choice</h2>
<p>The choices with the most mistakes come first. Found: of the texts that belong there, how many were sent there. Wrongly answered: how many of the other texts were sent there.</p>
${table(
  ['Choice', 'Found (95 % interval)', 'Wrongly answered'],
  choices.map(({ choice, texts, missed, wrongly, others }) => [
    choice,
    missed === undefined
      ? 'no such text'
      : rightOf(texts - hitsOf(missed, texts), texts, { share: 0, low: 1 - missed.high, high: 1 - missed.low }),
    wrongly === undefined ? '' : `${hitsOf(wrongly, others)} of ${others}`,
  ]),
)}
<h2>Wrong answers</h2>${confusions.length === 0 ? '<p>None.</p>' : '<p>The most frequent mistakes, with some of the texts.</p>'}
${confusions
  .map(({ label, choice, count: times, places }) => {
    const texts = places.map((place) => `“${short(examples[place]?.input ?? '')}” (line ${examples[place]?.line})`);
    const sent = `${times} of ${escaped(label)} ${times === 1 ? 'was' : 'were'} sent to ${escaped(choice)}:`;
    return `<p>${sent}</p><ul>${texts.map((text) => `<li>${escaped(text)}</li>`).join('')}</ul>`;
  })
  .join('\n')}
<h2>Does a confidence mean what it says?</h2>
<p>Each point is a group of texts with a similar confidence; the line through it is the interval in which their true share of right answers lies. On the dashed line, eight of ten answers with a confidence of .8 are right. Below it, answers are less often right than they seem.</p>
${chart(bins)}
${table(
  ['Confidence, about', 'Texts', 'Right (95 % interval)'],
  bins.map(({ confidence, count: of, accuracy: there }) => {
    return [confidence.toFixed(2), of, rightOf(hitsOf(there, of), of, there)];
  }),
)}
${matrix(answers, names)}
<p class="facts">${figureLines(quality).map(escaped).join('; ')}.</p>
</body></html>
`;
  // A number and its sign stay in one line.
  return page.replaceAll(/(\d) %/g, '$1&nbsp;%');
}

/** All answers in one table; nothing where there are too many choices for that. */
function matrix(answers: readonly JudgedAnswer[], names: readonly string[]): string {
  if (names.length > MOST_IN_MATRIX) return '';
  const count = (row: string, column: string): number =>
    answers.filter(({ label, choice }) => label === row && choice === column).length;
  const rows = names.map((row) => [row, ...names.map((column) => count(row, column) || '·')]);
  return `<h2>All answers</h2><p>A row for each choice to which texts belong, a column for each to which they were sent.</p>
${table(['', ...names], rows)}`;
}

/** What always the most frequent choice would get: less than that is worth nothing. */
function likeliest(choices: AnswerQuality['choices'], count: number): string {
  const [most] = choices.toSorted((a, b) => b.texts - a.texts);
  return most === undefined
    ? ''
    : `Always the most frequent choice, ${most.choice}, would be right for ${most.texts}: ${percent(most.texts / count)}.`;
}

/** What costs least, beside a person who decides everything and answers that are all acted on. */
function costs({ thresholds, cost, actingOnAll, askingAlways }: Cheapest): string {
  const [least, alone] = [Math.min(actingOnAll, askingAlways), actingOnAll < askingAlways];
  const said = (value: number): string => (Number.isFinite(value) ? value.toFixed(3) : 'never');
  const verdict =
    cost.value < least
      ? 'Act by the table.'
      : `That is no less than what it costs if ${alone ? 'every answer is acted on: act on all' : 'a person decides each text: let a person decide'}.`;
  return `<h2>What costs least</h2>
<p>A text costs ${askingAlways.toFixed(2)} if a person decides each and ${actingOnAll.toFixed(2)} if every answer is acted on. With the table, where a person decides what is less sure, it costs ${cost.value.toFixed(2)} (95 % interval ${cost.low.toFixed(2)} to ${cost.high.toFixed(2)}). ${verdict}</p>
${table(
  ['Answer', 'Act from', '95 % interval'],
  [...thresholds].map(([choice, { value, low, high }]) => [choice, said(value), `${said(low)} to ${said(high)}`]),
)}
`;
}

/** What to do, in a sentence: where nine of ten are right, or else why nowhere. */
function advice(thresholds: readonly Threshold[], count: number): string {
  const { found } = thresholds.find(({ target }) => target === ADVISED) ?? {};
  if (found === undefined)
    return 'At no confidence are nine of ten answers right. Let a person decide, and describe the choices or let them learn from examples.';
  const acted = Math.round(found.coverage * count);
  const rest = acted === count ? 'No text is left for a person.' : `Send the other ${count - acted} to a person.`;
  return `Act on answers with a confidence of ${found.threshold.toFixed(3)} or more: these are ${acted} of ${count} texts, and ${hitsOf(found.accuracy, acted)} of them are right. ${rest}`;
}

/** The share of right answers at which the page advises to act. */
const ADVISED = 0.9;

/** The right answers by confidence, each group with its interval and count. */
function chart(bins: ReturnType<typeof reliabilityOf>): string {
  const x = (value: number): string => (44 + value * SIZE).toFixed(1);
  const y = (value: number): string => (24 + (1 - value) * SIZE).toFixed(1);
  const tick = (value: number): string =>
    `<text x="${x(value)}" y="${SIZE + 40}" text-anchor="middle">${value}</text><text x="38" y="${y(value)}" dy="4" text-anchor="end">${value}</text>`;
  const points = bins.map(
    ({ confidence, accuracy: { share, low, high } }) =>
      `<path d="M${x(confidence)} ${y(low)}V${y(high)}" stroke="#8ab4f0" stroke-width="3"/><circle cx="${x(confidence)}" cy="${y(share)}" r="5" fill="#1f6feb"/>`,
  );
  return `<svg role="img" aria-label="right answers by confidence" viewBox="0 0 ${SIZE + 70} ${SIZE + 64}" width="${SIZE + 70}" font-size="13" fill="#333">
<path d="M${x(0)} ${y(1)}V${y(0)}H${x(1)}" fill="none" stroke="#999"/><path d="M${x(0)} ${y(0)}L${x(1)} ${y(1)}" stroke="#999" stroke-dasharray="4"/>
${[0, 0.5, 1].map(tick).join('')}${points.join('')}
<text x="${x(0.5)}" y="${SIZE + 58}" text-anchor="middle">confidence</text><text x="4" y="14">share of right answers</text></svg>`;
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  if (rows.length === 0) return '<p>None.</p>';
  const line = (cells: readonly (string | number)[], name: string): string =>
    `<tr>${cells.map((cell) => `<${name}>${escaped(String(cell))}</${name}>`).join('')}</tr>`;
  return `<div><table>${line(head, 'th')}${rows.map((row) => line(row, 'td')).join('')}</table></div>`;
}

function escaped(text: string): string {
  return visible(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** The beginning of a text. */
export function short(text: string): string {
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/** How many of a number of texts a share is. */
function hitsOf({ share }: Share, count: number): number {
  return Math.round(share * count);
}

/** A share as `81.3`, where another with a percent sign follows. */
function whole(value: number): string {
  return (100 * value).toFixed(1);
}

/** A share as `81.3 %`. */
export function percent(value: number): string {
  return `${(100 * value).toFixed(1)} %`;
}

/** A share with its interval, as `81.3 % (95 % interval 78.0 to 84.2 %)`. */
function interval({ share, low, high }: Share): string {
  return `${percent(share)} (95 % interval ${whole(low)} to ${percent(high)})`;
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
    ...thresholds.map(({ target, found }) => {
      const head = percent(target).padEnd(13);
      if (found === undefined) return `${head}no confidence is enough`;
      const { threshold, coverage, accuracy } = found;
      return `${head}${threshold.toFixed(3).padEnd(17)}${percent(coverage).padEnd(16)}${interval(accuracy)}`;
    }),
  ];
}

/** Choices that `choiceLines` shows at most. */
const ROWS = 20;

/** A line for each choice, those with the most mistakes first: how often it is missed, and wrongly answered. */
export function choiceLines({ choices }: AnswerQuality): readonly string[] {
  const said = (share: Share | undefined, of: number): string =>
    (share === undefined ? 'no such text' : `${hitsOf(share, of)} of ${of}, ${percent(share.share)}`).padEnd(22);
  const left = choices.length - ROWS;
  return [
    'missed                wrongly answered      choice',
    ...choices.slice(0, ROWS).map((each) => {
      const { choice, texts, missed, wrongly, others } = each;
      return `${said(missed, texts)}${said(wrongly, others)}${JSON.stringify(choice)}`;
    }),
    ...(left > 0 ? [`and ${left} choices with fewer mistakes`] : []),
  ];
}
