/**
 * What an interrupted `umpire decide` left in its file: whole lines that stay, and perhaps the beginning of one
 * that is taken away.
 */
import { createReadStream } from 'node:fs';
import { open, stat, truncate } from 'node:fs/promises';
import { belongsTo, headOf, type Layout } from './decided-lines.ts';
import { createRecordReader, type Entry, entriesIn } from './records.ts';

/** What is there already. */
export interface PickedUp {
  /** Lines that stay; so many records were taken from the source. */
  readonly lines: number;
  /** Bytes in the records' file up to there. */
  readonly end: number;
  /** Whether the head is still to be written. */
  readonly isNew: boolean;
}

/** More than one line can have: what is not whole behind the last whole line is not more. */
const MOST_BROKEN = 8 * 1024 * 1024;

/**
 * Steps over the records that have lines in `file`, which is cut behind the last whole one. Throws Error if the lines
 * are not those of these records.
 */
export async function pickUp(file: string, layout: Layout, source: AsyncIterator<Entry>): Promise<PickedUp> {
  const size = await sizeOf(file);
  const head = Buffer.from(headOf(layout));
  const begins = size === 0 ? Buffer.alloc(0) : await firstBytes(file, Math.max(1, Math.min(size, head.length)));
  if (size === 0 || (size < head.length && head.subarray(0, size).equals(begins))) {
    if (size > 0) await truncate(file, 0);
    return { lines: 0, end: 0, isNew: true };
  }
  const looksRight = layout.kind === 'json' ? begins.toString() === '{' : begins.equals(head);
  if (!looksRight) throw new Error(`${file} was not written for these records and options; nothing was changed`);
  let lines = 0;
  let whole = head.length;
  let end = 0;
  const reader = createRecordReader();
  for await (const entry of entriesIn(createReadStream(file), reader)) {
    if ('problem' in entry.read || !entry.whole) break;
    const { value, done } = await source.next();
    if (done === true || !belongsTo(layout, entry.read.value, value))
      throw new Error(`${file}, line ${entry.line}: is not of this file's records; nothing was changed`);
    lines++;
    whole = entry.end;
    end = value.end;
  }
  // A head shows whose file it is; without one, the first line does if it is whole.
  const isForeign = layout.kind === 'json' && lines === 0 && (await hasLineFeed(file));
  if (isForeign || size - whole > MOST_BROKEN)
    throw new Error(`${file}: is broken behind line ${lines}; nothing was changed`);
  if (whole < size) await truncate(file, whole);
  return { lines, end, isNew: whole === 0 };
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

async function firstBytes(file: string, count: number): Promise<Buffer> {
  const handle = await open(file);
  try {
    return (await handle.read(Buffer.alloc(count), 0, count, 0)).buffer;
  } finally {
    await handle.close();
  }
}

async function hasLineFeed(file: string): Promise<boolean> {
  for await (const piece of createReadStream(file)) if ((piece as Buffer).includes(0x0a)) return true;
  return false;
}
