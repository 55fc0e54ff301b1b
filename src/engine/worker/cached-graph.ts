/**
 * Graphs as the runtime has optimised them, with weights packed for this processor: the system maps such a file, and
 * all processes share its memory. The process that makes an entry runs it first, and the entry gets its name when the
 * model's canary decision was right: one that ends its process is never seen by another.
 */
import { createReadStream } from 'node:fs';
import { mkdir, open, readFile, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { Graph } from '../families/family.ts';
import { DRAFT, entryName, touch, writeSafely } from './cache.ts';
import { loadOptimised, RUNTIME_VERSION } from './runtime.ts';

/** A graph, and what is to be called when it is known whether it decides as it should. */
export interface CachedGraph {
  readonly graph: Graph;
  readonly settle?: (sound: boolean) => Promise<void>;
}

const GRAPH = 'graph.onnx';
const WEIGHTS = 'graph.data';
const SUMS = 'sums.json';
const RAW = { graph: 'raw.onnx', weights: 'raw.onnx.data' } as const;

/** Bytes that an entry leaves free on the disk, at least: the store shares it. */
const LEAST_FREE = 2 ** 30;
/** Milliseconds after which an entry that was never completed is made again: its process has ended. */
const ABANDONED = 600_000;
/** The runtime's kernels read packed weights in units of this many bytes, and fail where one begins elsewhere. */
const ALIGNMENT = 64;
/** Bytes that are read together. */
const PIECE = 1 << 20;

/**
 * The graph that `content` tells from others, from the folder; where it is not there, it is loaded and, if possible,
 * put there. `checked`: an engine of this service has checked the entry, or made it. `load` loads the graph, and saves
 * it as it was optimised in a file of this name if it is given one. Rejects with what `load` rejects with.
 */
export async function cachedGraph(
  folder: string,
  content: string,
  checked: boolean,
  load: (optimised?: string) => Promise<Graph>,
): Promise<CachedGraph> {
  const home = join(folder, entryName([RUNTIME_VERSION, content]));
  const kept = await loadKept(home, checked);
  if (kept !== undefined) return { graph: kept };
  const draft = `${home}${DRAFT}`;
  if (!(await beginDraft(draft))) return { graph: await load() };
  try {
    await (await load(join(draft, RAW.graph))).dispose();
    await completeDraft(draft);
    const graph = await loadOptimised(join(draft, GRAPH));
    return { graph, settle: (sound) => settle(draft, sound ? home : undefined) };
  } catch {
    await settle(draft, undefined);
    return { graph: await load() };
  }
}

async function loadKept(home: string, checked: boolean): Promise<Graph | undefined> {
  const text = await readFile(join(home, SUMS), 'utf8').catch(() => undefined);
  try {
    if (text === undefined) throw new Error('there is no such entry');
    for (const [file, sum] of checked ? [] : JSON.parse(text))
      if ((await sumOf(join(home, file))) !== sum) throw new Error(`${file} is broken`);
    await touch(home);
    return await loadOptimised(join(home, GRAPH));
  } catch {
    await settle(home, undefined);
    return undefined;
  }
}

/** Whether this process is to make the entry. */
async function beginDraft(draft: string): Promise<boolean> {
  try {
    const { bavail, bsize } = await statfs(dirname(draft));
    if (bavail * bsize < LEAST_FREE) return false;
    const age = Date.now() - (await stat(draft).catch(() => ({ mtimeMs: Date.now() }))).mtimeMs;
    if (age > ABANDONED) await rm(draft, { recursive: true, force: true });
    await mkdir(draft, { mode: 0o700 });
    return true;
  } catch {
    return false;
  }
}

/** Gives a draft its name, or removes it. Never rejects. */
async function settle(draft: string, name: string | undefined): Promise<void> {
  try {
    if (name !== undefined) return await rename(draft, name);
  } catch {
    // Another process was first.
  }
  await rm(draft, { recursive: true, force: true }).catch(() => {});
}

/** Writes graph and weights as they are loaded later, from what the runtime has saved. */
async function completeDraft(draft: string): Promise<void> {
  const source = await open(join(draft, RAW.weights), 'a+', 0o600);
  const target = await open(join(draft, WEIGHTS), 'wx', 0o600);
  try {
    let end = 0;
    const copies: { readonly from: number; readonly to: number; readonly length: number }[] = [];
    const move = (from: number, length: number): number => {
      const to = Math.ceil(end / ALIGNMENT) * ALIGNMENT;
      copies.push({ from, to, length });
      end = to + length;
      return to;
    };
    const graph = withMovedWeights(await readFile(join(draft, RAW.graph)), WEIGHTS, move);
    const piece = Buffer.alloc(PIECE);
    for (const { from, to, length } of copies) {
      for (let done = 0; done < length; ) {
        const { bytesRead } = await source.read(piece, 0, Math.min(PIECE, length - done), from + done);
        if (bytesRead === 0) throw new Error('the saved weights end too early');
        await target.write(piece, 0, bytesRead, to + done);
        done += bytesRead;
      }
    }
    await target.sync();
    await writeSafely(join(draft, GRAPH), graph);
  } finally {
    await source.close();
    await target.close();
  }
  await rm(join(draft, RAW.graph));
  await rm(join(draft, RAW.weights));
  const sums = [];
  for (const file of [GRAPH, WEIGHTS]) sums.push([file, await sumOf(join(draft, file))]);
  await writeSafely(join(draft, SUMS), JSON.stringify(sums));
}

/** A checksum of a file: it finds damage, not intent. Rejects if it cannot be read. */
async function sumOf(path: string): Promise<number> {
  let sum = 0;
  for await (const piece of createReadStream(path, { highWaterMark: PIECE })) sum = crc32(piece as Buffer, sum);
  return sum;
}

// Moves the external data of an ONNX file, a protobuf message, without knowing the rest of its schema.

// The fields of ONNX's messages that say where weights lie.
const MODEL_GRAPH = 7;
const GRAPH_INITIALIZER = 5;
const TENSOR_EXTERNAL_DATA = 13;
const [ENTRY_KEY, ENTRY_VALUE] = [1, 2];

/** Says where bytes lie from now on. */
type Move = (from: number, length: number) => number;

/**
 * The model with its external data in the file `location`, each tensor and each of its packed forms where `move` puts
 * it. Throws if it is no model.
 */
function withMovedWeights(model: Uint8Array, location: string, move: Move): Uint8Array {
  return mapMessage(model, MODEL_GRAPH, (graph) =>
    mapMessage(graph, GRAPH_INITIALIZER, (tensor) => {
      const entries = new Map<string, string>();
      const writer = new BinaryWriter();
      writer.raw(
        mapMessage(tensor, TENSOR_EXTERNAL_DATA, (entry) => {
          const texts = new Map<number, string>();
          for (const reader = new BinaryReader(entry); reader.pos < reader.len; )
            texts.set(reader.tag()[0], reader.string());
          entries.set(texts.get(ENTRY_KEY) ?? '', texts.get(ENTRY_VALUE) ?? '');
          return undefined;
        }),
      );
      for (const [key, value] of moved(entries, location, move)) {
        writer.tag(TENSOR_EXTERNAL_DATA, WireType.LengthDelimited).fork();
        writer.tag(ENTRY_KEY, WireType.LengthDelimited).string(key);
        writer.tag(ENTRY_VALUE, WireType.LengthDelimited).string(value).join();
      }
      return writer.finish();
    }),
  );
}

/** A packed form is written as `<kernel>|<offset>;<length>;<checksum>|…`. */
function moved(entries: ReadonlyMap<string, string>, location: string, move: Move): readonly [string, string][] {
  return [...entries].map(([key, value]) => {
    if (key === 'location') return [key, location];
    if (key === 'offset') return [key, String(move(Number(value), Number(entries.get('length'))))];
    if (!key.startsWith('prepacked_')) return [key, value];
    const place = /(?<=\|)(\d+);(\d+)/g;
    return [key, value.replace(place, (_, from, length) => `${move(Number(from), Number(length))};${length}`)];
  });
}

/** The message with the content of each `field` replaced, or left out; it must be bytes or another message. */
function mapMessage(
  message: Uint8Array,
  field: number,
  change: (content: Uint8Array) => Uint8Array | undefined,
): Uint8Array {
  const reader = new BinaryReader(message);
  const writer = new BinaryWriter();
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (number !== field) writer.tag(number, type).raw(reader.skip(type, number));
    else {
      const content = change(reader.bytes());
      if (content !== undefined) writer.tag(number, type).bytes(content);
    }
  }
  return writer.finish();
}
