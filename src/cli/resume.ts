/**
 * What an interrupted `umpire decide` left in its file: complete lines, which stay, and perhaps the beginning of
 * another, which is removed.
 */
import { createReadStream } from 'node:fs';
import { open, stat, truncate } from 'node:fs/promises';
import { belongsTo, headOf, type Layout } from './decided-lines.ts';
import { createRecordReader, type Entry, entriesIn } from './records.ts';

/** What an earlier run left, and what of it stays. */
export interface PickedUp {
  /** Lines that stay, which is also the number of records taken from the source. */
  readonly lines: number;
  /** Bytes of the records' file up to the last of these records. */
  readonly end: number;
  /** Whether nothing stays, so that the head is still to be written. */
  readonly isNew: boolean;
}

/** Bytes after the last complete line that may be removed: no more than one broken line can have. */
const MOST_BROKEN = 8 * 1024 * 1024;

/**
 * Skips the records that have a line in `file`, and truncates `file` after its last complete line. Throws Error if the
 * lines are not those of these records.
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
  // A CSV file's head shows that it belongs to this command. A JSON file has none, so a complete line must.
  const isForeign = layout.kind === 'json' && lines === 0 && (await hasLineFeed(file));
  if (isForeign || size - whole > MOST_BROKEN)
    throw new Error(`${file}: is broken after line ${lines}; nothing was changed`);
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
