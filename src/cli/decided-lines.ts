/** What `umpire decide` writes for a record: its own fields, then the decision, or why there is none. */
import type { Answered, Refusal } from './deciding-client.ts';
import { csvLine, type Entry, type Fields } from './records.ts';

/** How a record ended: with an answer or with an error. */
export type Outcome =
  | { readonly kind: 'answered'; readonly answer: Answered }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** How lines are written. `columns`: the records' own fields. */
export type Layout =
  | { readonly kind: 'json'; readonly probabilities: boolean }
  | { readonly kind: 'csv'; readonly columns: readonly string[]; readonly probabilities: boolean };

/** The fields that this command adds; a record must not have them. */
const ADDED = ['choice', 'confidence', 'probabilities', 'model', 'learned', 'error'] as const;
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
function addedColumns(probabilities: boolean): readonly string[] {
  return ADDED.filter((name) => probabilities || name !== 'probabilities');
}

/** The first line of a file in this layout; `''` if it has none. */
export function headOf(layout: Layout): string {
  return layout.kind === 'json' ? '' : csvLine([...layout.columns, ...addedColumns(layout.probabilities)]);
}

/** The line of one record, with its line feed. */
export function lineOf(layout: Layout, entry: Entry, outcome: Outcome): string {
  const own = ownOf(entry, outcome);
  const added = addedOf(layout, outcome);
  if (layout.kind === 'json') return `${JSON.stringify({ ...(own ?? { line: entry.line }), ...added })}\n`;
  const all: Fields = { ...added, ...(outcome.kind === 'refused' ? { error: errorText(outcome.refusal) } : {}) };
  const names = addedColumns(layout.probabilities);
  return csvLine([...layout.columns.map((name) => cellOf(own?.[name])), ...names.map((name) => cellOf(all[name]))]);
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

function addedOf({ probabilities: shown }: Layout, outcome: Outcome): Fields {
  if (outcome.kind === 'refused') return { error: outcome.refusal };
  const { choice, confidence, probabilities, model, learned } = outcome.answer;
  return {
    choice,
    confidence,
    ...(shown ? { probabilities } : {}),
    model,
    ...(learned === undefined ? {} : { learned }),
  };
}

function errorText({ code, message }: Refusal): string {
  return `${code}: ${message}`;
}

/** A value as a cell of CSV: a text as it is, nothing as the empty text, anything else as JSON. */
function cellOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
