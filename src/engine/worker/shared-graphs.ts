/**
 * Graphs that packages have in common, such as the first stage of two models: of files with the same content an engine
 * loads one, and releases it with the last model that uses it.
 */
import { readFile } from 'node:fs/promises';
import type { Graph } from '../families/family.ts';
import type { Manifest } from '../packages/manifest.ts';
import { release } from './release.ts';

interface SharedGraph {
  readonly loading: Promise<Graph>;
  users: number;
}

const SHARED = new Map<string, SharedGraph>();

/**
 * The graph with this content, loaded by `load` if no model uses one yet. Each caller disposes of what it gets. Rejects
 * with what `load` rejects with.
 */
export async function sharedGraph(content: string, load: () => Promise<Graph>): Promise<Graph> {
  const shared = SHARED.get(content) ?? { loading: load(), users: 0 };
  SHARED.set(content, shared);
  shared.users++;
  /** Resolves to whether nobody uses the graph any more. */
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
  const graph = await readFile(path);
  const named = [...files].filter(([name]) => name === file || graph.includes(name));
  release(graph);
  return named.map(([, { sha256 }]) => sha256).join();
}
