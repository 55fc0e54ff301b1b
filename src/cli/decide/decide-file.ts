/** The work of `umpire decide`: reads records, has the service decide them, and writes a line for each. */
import { createReadStream, existsSync } from 'node:fs';
import { open, stat, truncate } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { messageOf } from '../../engine/errors.ts';
import { counted } from '../arguments.ts';
import { Interrupted, type Terminal } from '../command.ts';
import { PLAIN_CSV } from './csv.ts';
import { belongsTo, headOf, isCut, type Layout, lineOf, showProgress, takenName, unreadable } from './decided-lines.ts';
import { type Asked, type DecidingClient, nameOf, type Outcome } from './deciding-client.ts';
import type { Entry } from './lines.ts';
import { interruptible, outcomesOf } from './pace.ts';
import {
  createRecordReader,
  entriesIn,
  headerProblem,
  questionOf,
  type Reading,
  type RecordReader,
} from './records.ts';

/** What `umpire decide` was asked to do. */
export interface DecideJob {
  readonly client: DecidingClient;
  readonly asked: Omit<Asked, 'input' | 'instruction'>;
  readonly reading: Reading;
  readonly file: string | undefined;
  readonly out: string | undefined;
  readonly resumes: boolean;
  readonly format: 'json' | 'csv' | undefined;
  readonly probabilities: boolean;
  /** What `Layout` has of that name, and the name of what it was measured with. */
  readonly sure: { readonly model: string; readonly thresholds: NonNullable<Layout['sure']> } | undefined;
  readonly atOnce: number;
  /** Milliseconds for which the command goes on while no text gets an answer. */
  readonly patience: number;
}

/**
 * Decides the records of a file. Throws Error with a message for the operator, or Interrupted. Every line that was
 * written is complete, also then.
 */
export async function decideFile(job: DecideJob, terminal: Terminal): Promise<void> {
  const stop = interruptible(terminal);
  const { signal } = stop;
  const size = job.file === undefined ? undefined : (await stat(job.file)).size;
  const reader = createRecordReader(job.reading.separator);
  const pieces = job.file === undefined ? terminal.pieces(signal) : createReadStream(job.file, { signal });
  const records = entriesIn(pieces, reader);
  const tally = { lines: 0, errors: 0, end: 0, cut: 0, models: new Set<string>() };
  const endProgress = showProgress(terminal, () => ({
    lines: tally.lines,
    errors: tally.errors,
    share: size === undefined ? undefined : Math.min(1, tally.end / Math.max(1, size)),
  }));
  const { client, atOnce, patience } = job;
  const question = (entry: Entry) => askedOf(entry, job);
  let start: Awaited<ReturnType<typeof begin>> | undefined;
  try {
    start = await begin(job, records, reader, terminal);
    const { layout, destination } = start;
    tally.end = start.end;
    const asking = { client, question, weigh: unitsOf, atOnce, patience, signal };
    for await (const { thing: entry, outcome } of outcomesOf(start.rest, asking)) {
      if (!(await destination.write(lineOf(layout, entry, outcome)))) return;
      tally.lines++;
      tally.end = entry.end;
      if (outcome.kind === 'answered') tally.models.add(nameOf(outcome.answer));
      else tally.errors++;
      if (isCut(layout, entry)) tally.cut++;
    }
  } catch (error) {
    // A read that the signal aborted fails with an error of its own; the signal's reason is the cause.
    const cause = signal.aborted ? signal.reason : error;
    const goesOn = job.out === undefined ? '' : ', --resume continues after them';
    const done = start === undefined ? '' : `; ${counted(tally.lines, 'line')} decided${goesOn}`;
    const text = `${messageOf(cause)}${done}`;
    throw cause instanceof Interrupted ? new Interrupted(text) : new Error(text, { cause });
  } finally {
    // Requests that are still in progress have nobody to answer to.
    stop.abort(new Interrupted('over'));
    endProgress();
    await start?.destination.close();
  }
  if (tally.cut > 0)
    terminal.err(
      `${counted(tally.cut, 'record')} with fields that the first one does not have: the CSV is without them`,
    );
  const [other] = tally.models.difference(new Set([job.sure?.model]));
  if (job.sure !== undefined && other !== undefined)
    terminal.err(`what is sure was measured with ${job.sure.model}, and ${other} decided: measure it again`);
  const sum = `${counted(tally.lines, 'line')} decided${start.resumed > 0 ? ` after ${start.resumed} that were there` : ''}`;
  if (tally.errors > 0) throw new Error(`${sum}, ${tally.errors} of them with an error`);
  terminal.err(sum);
}

/**
 * Reads until the layout of the lines is known, skips records that already have a line, and opens the destination,
 * whose `write` resolves to false once nobody reads. Resolves to these, to the records that are left, to how many have
 * a line, and to where these end in their file, in bytes.
 */
async function begin(job: DecideJob, records: AsyncGenerator<Entry>, reader: RecordReader, terminal: Terminal) {
  const { out, resumes, format, probabilities } = job;
  const added = { probabilities, sure: job.sure?.thresholds };
  const read: Entry[] = [];
  for (let next = await records.next(); next.done !== true; next = await records.next()) {
    read.push(next.value);
    const isEnough = 'value' in next.value.read || format !== 'csv' || read.length >= MOST_UNREADABLE;
    if (isEnough || reader.form?.kind === 'csv') break;
  }
  const columns = columnsOf(reader, read, job);
  const isCsv = (format ?? reader.form?.kind) === 'csv';
  const style = reader.form?.kind === 'csv' ? reader.form.style : PLAIN_CSV;
  const layout: Layout = isCsv ? { kind: 'csv', columns, style, ...added } : { kind: 'json', ...added };
  const rest = (async function* () {
    yield* read;
    yield* records;
  })();
  if (out === undefined) {
    const destination = { write: terminal.write, close: async () => {} };
    if (headOf(layout) !== '') await destination.write(headOf(layout));
    return { layout, rest, destination, resumed: 0, end: 0 };
  }
  const there = resumes ? await pickUp(out, layout, rest) : undefined;
  const destination = await fileDestination(out, there === undefined);
  if (there?.isNew !== false) await destination.write(headOf(layout));
  return { layout, rest, destination, resumed: there?.lines ?? 0, end: there?.end ?? 0 };
}

/** The names of a record's own fields. Throws Error if no record with these could be decided. */
function columnsOf(reader: RecordReader, read: readonly Entry[], job: DecideJob): readonly string[] {
  const { form } = reader;
  if (form?.kind !== 'csv') {
    const [first = {}] = read.flatMap(({ read: each }) => ('value' in each ? [each.value] : []));
    return Object.keys(first).filter((name) => takenName([name]) === undefined);
  }
  const { columns } = form;
  if (columns === undefined) {
    const [entry = { line: 1, read: { problem: 'is no header' } }] = read;
    throw new Error(`line ${entry.line}: ${'problem' in entry.read ? entry.read.problem : 'is no header'}`);
  }
  const problem = headerProblem(form, job.reading);
  if (problem !== undefined) throw new Error(problem);
  const taken = takenName(columns);
  if (taken !== undefined) throw new Error(`the header has a column '${taken}', which the answers add`);
  return columns;
}

async function fileDestination(file: string, mustBeNew: boolean) {
  const handle = await open(file, mustBeNew ? 'ax' : 'a').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') throw new Error(`${file} exists; --resume continues after what it has`);
    throw error;
  });
  return {
    async write(text: string): Promise<boolean> {
      await handle.appendFile(text);
      return true;
    },
    async close() {
      await handle.sync();
      await handle.close();
    },
  };
}

/** What the service is asked about a record, or why it cannot be asked. */
function askedOf(entry: Entry, { asked, reading }: DecideJob): Asked | Outcome {
  if ('problem' in entry.read) return unreadable(entry, entry.read.problem);
  const { value: fields } = entry.read;
  const taken = takenName(Object.keys(fields));
  if (taken !== undefined) return unreadable(entry, `has a field '${taken}', which the answers add`);
  const question = questionOf(fields, reading);
  for (const [param, value] of Object.entries(question)) {
    if (typeof value === 'string' && value !== '') continue;
    const message = `${param} must be a text that is not empty`;
    return { kind: 'refused', refusal: { code: 'missing_field', message, param } };
  }
  return { ...asked, ...(question as { input: string; instruction: string }) };
}

/** Roughly how much a record holds, in UTF-16 code units. */
function unitsOf({ read }: Entry): number {
  if ('problem' in read) return read.problem.length;
  return Object.values(read.value).reduce<number>(
    (sum, value) => sum + (typeof value === 'string' ? value.length : 64),
    256,
  );
}

// What an interrupted `umpire decide` left in its file: complete lines, which stay, and perhaps the beginning of
// another, which is removed.

/** Records that may be unreadable at the beginning of a file whose lines become CSV. */
const MOST_UNREADABLE = 512;
/** Bytes after the last complete line that may be removed: no more than one broken line can have. */
const MOST_BROKEN = 8 * 1024 * 1024;

/**
 * Skips the records that have a line in `file`, and truncates `file` after its last complete line. Resolves to how many
 * lines stay, where the last of their records ends in its file, and whether the head is still to be written. Throws
 * Error if the lines are not those of these records.
 */
async function pickUp(file: string, layout: Layout, source: AsyncIterator<Entry>) {
  const size = existsSync(file) ? (await stat(file)).size : 0;
  const head = Buffer.from(headOf(layout));
  const most = Math.max(1, head.length);
  const begins = size === 0 ? head : await buffer(createReadStream(file, { end: most - 1 }));
  if (size === 0 || (size < head.length && head.subarray(0, size).equals(begins))) {
    if (size > 0) await truncate(file, 0);
    return { lines: 0, end: 0, isNew: true };
  }
  const looksRight = layout.kind === 'json' ? begins.toString() === '{' : begins.equals(head);
  if (!looksRight) throw new Error(`${file} was not written for these records and options; nothing was changed`);
  let [lines, whole, end] = [0, head.length, 0];
  let isForeign = false;
  const reader = createRecordReader(layout.kind === 'csv' ? layout.style.separator : undefined);
  for await (const entry of entriesIn(createReadStream(file), reader)) {
    if ('problem' in entry.read || !entry.whole) {
      // A CSV file's head shows that it belongs to this command. A JSON file has none, so its first line must.
      isForeign = layout.kind === 'json' && lines === 0 && entry.whole;
      break;
    }
    const { value, done } = await source.next();
    if (done === true || !belongsTo(layout, entry.read.value, value))
      throw new Error(`${file}, line ${entry.line}: is not of this file's records; nothing was changed`);
    lines++;
    whole = entry.end;
    end = value.end;
  }
  if (isForeign || size - whole > MOST_BROKEN)
    throw new Error(`${file}: is broken after line ${lines}; nothing was changed`);
  if (whole < size) await truncate(file, whole);
  return { lines, end, isNew: whole === 0 };
}
