/**
 * What `umpire decide` writes for a record, its own fields and then the decision or why there is none; and the progress
 * that it shows meanwhile.
 */
import type { Terminal } from '../command.ts';
import { type CsvStyle, csvLine } from './csv.ts';
import type { Outcome, Refusal } from './deciding-client.ts';
import type { Entry, Fields } from './lines.ts';

/** How lines are written. `columns`: the records' own fields. `style`: as the records are, if they are CSV. */
export type Layout = (
  | { readonly kind: 'json' }
  | { readonly kind: 'csv'; readonly columns: readonly string[]; readonly style: CsvStyle }
) & {
  readonly probabilities: boolean;
  /** From which confidence on each choice is sure, null for never; undefined if that is not to be marked. */
  readonly sure: Readonly<Record<string, number | null>> | undefined;
};

/** The fields that this command adds; a record must not have them. */
const ADDED = ['choice', 'confidence', 'sure', 'probabilities', 'model', 'learned', 'error'] as const;
/** The error code of a record that cannot be read, so that nobody was asked about it; not one of the contract's. */
const UNREADABLE = 'unreadable_line';

/** The first of a record's field names that this command adds itself, if there is one. */
export function takenName(names: readonly string[]): string | undefined {
  return names.find((name) => (ADDED as readonly string[]).includes(name));
}

/** The outcome of a record that cannot be read. */
export function unreadable({ line }: Entry, problem: string): Outcome {
  const message = `line ${line}: ${problem}`;
  return { kind: 'refused', refusal: { code: UNREADABLE, message, param: null } };
}

/** The columns that follow a record's own. */
function addedColumns({ probabilities, sure }: Layout): readonly string[] {
  return ADDED.filter((name) => (probabilities || name !== 'probabilities') && (sure !== undefined || name !== 'sure'));
}

/** The first line of a file in this layout; `''` if it has none. */
export function headOf(layout: Layout): string {
  if (layout.kind === 'json') return '';
  const { columns, style } = layout;
  return `${style.marked ? '\ufeff' : ''}${csvLine([...columns, ...addedColumns(layout)], style)}`;
}

/** The line of one record, with its line feed. */
export function lineOf(layout: Layout, entry: Entry, outcome: Outcome): string {
  const own = ownOf(entry, outcome);
  const added = addedOf(layout, outcome);
  if (layout.kind === 'json') return `${JSON.stringify({ ...(own ?? { line: entry.line }), ...added })}\n`;
  const error = outcome.kind === 'refused' ? `${outcome.refusal.code}: ${outcome.refusal.message}` : '';
  const cells = addedColumns(layout).map((name) => (name === 'error' ? error : cellOf(added[name])));
  return csvLine([...layout.columns.map((name) => cellOf(own?.[name])), ...cells], layout.style);
}

/** Whether a record has fields for which the lines have no column. */
export function isCut(layout: Layout, { read }: Entry): boolean {
  if (layout.kind !== 'csv' || 'problem' in read) return false;
  return Object.keys(read.value).some((name) => !layout.columns.includes(name));
}

/** Whether a line that an earlier run wrote belongs to this record. */
export function belongsTo(layout: Layout, earlier: Fields, entry: Entry): boolean {
  const { error } = earlier;
  const code = typeof error === 'string' ? error : (error as Partial<Refusal> | undefined)?.code;
  const isUnreadable = code?.startsWith(UNREADABLE) === true;
  if (isUnreadable) return JSON.stringify(error).includes(`line ${entry.line}: `);
  if ('problem' in entry.read) return false;
  const { value: fields } = entry.read;
  const names =
    layout.kind === 'csv'
      ? layout.columns
      : new Set([...Object.keys(fields), ...Object.keys(earlier).filter((name) => takenName([name]) === undefined)]);
  for (const name of names) if (cellOf(earlier[name]) !== cellOf(fields[name])) return false;
  return true;
}

function ownOf({ read }: Entry, outcome: Outcome): Fields | undefined {
  const shown = outcome.kind === 'answered' || outcome.refusal.code !== UNREADABLE;
  return shown && 'value' in read ? read.value : undefined;
}

function addedOf({ probabilities: shown, sure }: Layout, outcome: Outcome): Fields {
  if (outcome.kind === 'refused') return { error: outcome.refusal };
  const { choice, confidence, probabilities, model, learned } = outcome.answer;
  const threshold = sure !== undefined && Object.hasOwn(sure, choice) ? sure[choice] : undefined;
  return {
    choice,
    confidence,
    ...(sure === undefined ? {} : { sure: confidence >= (threshold ?? Number.POSITIVE_INFINITY) }),
    ...(shown ? { probabilities } : {}),
    model,
    ...(learned === undefined ? {} : { learned }),
  };
}

/** A value as a cell of CSV: a text as it is, nothing as the empty text, anything else as JSON. */
function cellOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** How far a command has come. */
export interface Done {
  readonly lines: number;
  readonly errors: number;
  /** The share that is done, from 0 to 1; undefined where the whole is not known. */
  readonly share: number | undefined;
}

/** Milliseconds between two updates. */
const INTERVAL_MS = 250;
/** Updates that the rate is the mean of: ten seconds. */
const SAMPLES = 40;
/** Characters of the bar. */
const BAR = 24;

/** Shows what `done` returns, until the function is called that it returns; nothing where there is no terminal. */
export function showProgress({ status }: Terminal, done: () => Done): () => void {
  if (status === undefined) return () => {};
  const samples: (Done & { readonly at: number })[] = [];
  const timer = setInterval(() => {
    const now = { ...done(), at: performance.now() };
    samples.push(now);
    if (samples.length > SAMPLES) samples.shift();
    const { at, lines, share } = samples[0] ?? now;
    const seconds = Math.max((now.at - at) / 1000, 1e-3);
    status(progressLine(now, (now.lines - lines) / seconds, ((now.share ?? 0) - (share ?? 0)) / seconds));
  }, INTERVAL_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
    status('');
  };
}

/** The text of the bar. `rate`: lines per second. `pace`: share of the whole per second. */
function progressLine({ lines, errors, share }: Done, rate: number, pace: number): string {
  const failed = errors > 0 ? `, ${errors} errors` : '';
  const counts = `${lines} lines${failed}, ${rate.toFixed(rate < 10 ? 1 : 0)}/s`;
  if (share === undefined) return counts;
  const full = Math.round(BAR * share);
  const bar = `[${'#'.repeat(full)}${'-'.repeat(BAR - full)}] ${String(Math.floor(100 * share)).padStart(3)} %`;
  return `${bar}  ${counts}${pace > 0 ? `, ${clock((1 - share) / pace)} left` : ''}`;
}

function clock(seconds: number): string {
  const whole = Math.round(seconds);
  const two = (value: number): string => String(value % 60).padStart(2, '0');
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes}:${two(whole)}` : `${Math.floor(minutes / 60)}:${two(minutes)}:${two(whole)}`;
}
