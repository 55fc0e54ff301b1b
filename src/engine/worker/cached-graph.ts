/**
 * Graphs as the runtime has optimised them, with weights packed for this processor: the system maps such a file, and
 * all processes share its memory. The process that makes an entry runs it first, and the entry gets its name when the
 * model's canary decision was right: one that ends its process is never seen by another.
 */
import { mkdir, open, readFile, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Graph } from '../families/family.ts';
import { DRAFT, entryName, touch, writeSafely } from './cache.ts';
import { mapMessage } from './onnx-message.ts';
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

/** Where and how a graph is looked for. */
export interface GraphRequest {
  readonly folder: string;
  /** Tells it from others. */
  readonly content: string;
  /** Whether an engine of this service has checked its entry, or made it. */
  readonly checked: boolean;
  /** Loads it, and saves it as it was optimised in a file of this name if it is given one. */
  load(optimised?: string): Promise<Graph>;
}

/**
 * The graph from the folder; where it is not there, it is loaded and, if possible, put there. Rejects with what `load`
 * rejects with.
 */
export async function cachedGraph({ folder, content, checked, load }: GraphRequest): Promise<CachedGraph> {
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
  try {
    const sums: unknown = JSON.parse(await readFile(join(home, SUMS), 'utf8'));
    if (!Array.isArray(sums)) throw new Error('there are no sums');
    for (const [file, bytes, sum] of sums) {
      const path = join(home, file);
      const isSound = (await stat(path)).size === bytes && (checked || (await sumOf(path)) === sum);
      if (!isSound) throw new Error(`${file} is broken`);
    }
    await touch(home);
    return await loadOptimised(join(home, GRAPH));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') await settle(home, undefined);
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
    const graph = withMovedWeights(await readFile(join(draft, RAW.graph)), move);
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
  for (const file of [GRAPH, WEIGHTS])
    sums.push([file, (await stat(join(draft, file))).size, await sumOf(join(draft, file))]);
  await writeSafely(join(draft, SUMS), JSON.stringify(sums));
}

// The fields of ONNX's messages that say where weights lie.
const MODEL_GRAPH = 7;
const GRAPH_INITIALIZER = 5;
const TENSOR_EXTERNAL_DATA = 13;
const ENTRY_KEY = 1;

/**
 * The model with its external data in another file, each tensor where `move` puts it. Packed forms of a tensor are
 * written as `<kernel>|<offset>;<length>;<checksum>|…`.
 */
function withMovedWeights(model: Uint8Array, move: (from: number, length: number) => number): Uint8Array {
  return mapMessage(model, MODEL_GRAPH, (graph) =>
    mapMessage(graph, GRAPH_INITIALIZER, (tensor) => {
      const entries = new Map<string, string>();
      mapMessage(tensor, TENSOR_EXTERNAL_DATA, (entry) => {
        const [key, value] = textsOf(entry);
        entries.set(key, value);
        return entry;
      });
      if (!entries.has('location')) return tensor;
      const offset = move(Number(entries.get('offset')), Number(entries.get('length')));
      return mapMessage(tensor, TENSOR_EXTERNAL_DATA, (entry) => {
        const [key] = textsOf(entry);
        return mapMessage(entry, ENTRY_KEY + 1, (value) => {
          if (key === 'location') return Buffer.from(WEIGHTS);
          if (key === 'offset') return Buffer.from(String(offset));
          return key.startsWith('prepacked_') ? Buffer.from(movedBlobs(Buffer.from(value).toString(), move)) : value;
        });
      });
    }),
  );
}

function textsOf(entry: Uint8Array): readonly [key: string, value: string] {
  const found = ['', ''];
  for (const field of [ENTRY_KEY, ENTRY_KEY + 1]) {
    mapMessage(entry, field, (text) => {
      found[field - ENTRY_KEY] = Buffer.from(text).toString();
      return text;
    });
  }
  return found as [string, string];
}

function movedBlobs(packed: string, move: (from: number, length: number) => number): string {
  const [kernel, ...blobs] = packed.split('|');
  const moved = blobs.map((blob) => {
    if (blob === '') return blob;
    const [from, length, ...rest] = blob.split(';');
    return [move(Number(from), Number(length)), length, ...rest].join(';');
  });
  return [kernel, ...moved].join('|');
}

/** A checksum of a file: it finds damage, not intent. Rejects if it cannot be read. */
async function sumOf(path: string): Promise<number> {
  const file = await open(path, 'r');
  try {
    const piece = Buffer.alloc(PIECE);
    let [bytes, sum] = [0, 0];
    for (;;) {
      const { bytesRead } = await file.read(piece, 0, PIECE, bytes);
      if (bytesRead === 0) return sum;
      sum = crc32(piece.subarray(0, bytesRead), sum);
      bytes += bytesRead;
    }
  } finally {
    await file.close();
  }
}
