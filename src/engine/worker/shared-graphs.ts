/**
 * Graphs that packages have in common, such as the first stage of two models: of files with the same content an engine
 * loads one, and releases it with the last model that uses it.
 */
import { createReadStream } from 'node:fs';
import type { Graph } from '../families/family.ts';
import type { Manifest } from '../packages/manifest.ts';

interface SharedGraph {
  readonly loading: Promise<Graph>;
  users: number;
}

const SHARED = new Map<string, SharedGraph>();
/** Bytes of a graph file that are looked at together. */
const PIECE = 1 << 18;

/**
 * The graph with this content, loaded by `load` if no model uses one yet. Each caller disposes of what it gets. Rejects
 * with what `load` rejects with.
 */
export async function sharedGraph(content: string, load: () => Promise<Graph>): Promise<Graph> {
  const shared = SHARED.get(content) ?? { loading: load(), users: 0 };
  SHARED.set(content, shared);
  shared.users++;
  /** Returns whether nobody uses the graph any more. */
  const leave = (): boolean => {
    shared.users--;
    return shared.users === 0 && SHARED.delete(content);
  };
  try {
    const graph = await shared.loading;
    let disposed = false;
    return {
      ...graph,
      async dispose() {
        if (disposed) return;
        disposed = true;
        if (leave()) await graph.dispose();
      },
    };
  } catch (error) {
    leave();
    throw error;
  }
}

/**
 * What tells a graph file's content from others': its hash, and those of the package's files that it names as external
 * data. A name that occurs in it by chance only makes it shared less.
 */
export async function contentOf(path: string, file: string, files: Manifest['files']): Promise<string> {
  const named = new Set([file]);
  const longest = Math.max(...[...files.keys()].map((name) => Buffer.byteLength(name)));
  let end: Buffer = Buffer.alloc(0);
  // In pieces: whole graphs would leave gaps of their size in the memory that the runtime is about to fill.
  for await (const piece of createReadStream(path, { highWaterMark: PIECE })) {
    const part = Buffer.concat([end, piece as Buffer]);
    for (const name of files.keys()) if (part.includes(name)) named.add(name);
    end = part.subarray(-longest);
  }
  return [...files].flatMap(([name, { sha256 }]) => (named.has(name) ? [sha256] : [])).join();
}
