/**
 * Graphs that packages have in common, such as the first stage of two models: of files with the same content an engine
 * loads one, and releases it with the last model that uses it.
 */
import { open } from 'node:fs/promises';
import type { Graph } from '../families/family.ts';
import type { Manifest } from '../packages/manifest.ts';

interface SharedGraph {
  readonly loading: Promise<Graph>;
  users: number;
}

const SHARED = new Map<string, SharedGraph>();
/** Bytes of a graph file that are looked at together, and those that are looked at twice: more than a name takes. */
const PIECE = 1 << 18;
const OVERLAP = 1024;
/** What stands beside the name of a file of external data. */
const LOCATION = 'location';

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

/** The files of a package that a graph is made of. */
export interface GraphContent {
  readonly names: readonly string[];
  /** Their hashes, which tell the graph from others. */
  readonly digests: string;
}

/**
 * What tells a graph file's content from others': its hash, and those of the package's files that it names as external
 * data. A name that occurs in it by chance only makes it shared less.
 */
export async function contentOf(path: string, file: string, files: Manifest['files']): Promise<GraphContent> {
  const named = new Set([file]);
  const part = Buffer.alloc(OVERLAP + PIECE);
  const handle = await open(path, 'r');
  try {
    for (let [at, kept] = [0, 0]; ; ) {
      const { bytesRead } = await handle.read(part, kept, PIECE, at);
      if (bytesRead === 0) break;
      const text = part.subarray(0, kept + bytesRead);
      if (text.includes(LOCATION)) for (const name of files.keys()) if (text.includes(name)) named.add(name);
      at += bytesRead;
      kept = Math.min(OVERLAP, text.length);
      part.copyWithin(0, text.length - kept, text.length);
    }
  } finally {
    await handle.close();
  }
  const used = [...files].filter(([name]) => named.has(name));
  return { names: used.map(([name]) => name), digests: used.map(([, { sha256 }]) => sha256).join() };
}
