/**
 * Finds the model packages of a folder: `<models>/<id>/<revision>/model.json`. Reads manifests and file sizes only; the
 * contents of the files are verified by the process that loads them, so that what was verified is what runs.
 */
import { createHash } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { EngineLogger } from '../options.ts';
import { type Cascade, readCascade } from './cascade.ts';
import { byName, type Manifest, NAME_PATTERN, readManifest } from './manifest.ts';
import { checkInside, readRegular, statRegular } from './regular-file.ts';

/** A package that was found. With problems it must not be loaded; `manifest` then holds what could be read. */
export interface FoundPackage {
  readonly folder: string;
  readonly manifest: Manifest;
  /** The options of a cascade. */
  readonly cascade?: Cascade | undefined;
  /** Each names its place; empty for a package that may be loaded. */
  readonly problems: readonly string[];
  /** Changes whenever the manifest or a file that it names changes. */
  readonly signature: string;
}

/** Bytes of a manifest: more than one with a file of every name that there could be. */
const MOST_MANIFEST_BYTES = 1024 * 1024;

/** All packages in the order of their ids and revisions. Rejects if the folder cannot be listed. */
export async function scanPackages(modelsDir: string): Promise<readonly FoundPackage[]> {
  const found: FoundPackage[] = [];
  for (const id of await folders(modelsDir)) {
    // A folder that vanishes between the two listings, or a link that leads nowhere, holds no packages.
    for (const revision of await folders(join(modelsDir, id)).catch(() => [])) {
      found.push(await readPackage(join(modelsDir, id, revision), id, revision));
    }
  }
  return found;
}

/** Looks at one package's folder. Never throws: what is wrong is in `problems`. */
export async function readPackage(folder: string, id: string, revision: string): Promise<FoundPackage> {
  const hash = createHash('sha256');
  let text = '';
  const missing: string[] = [];
  try {
    const file = join(folder, 'model.json');
    text = (await readRegular(file, MOST_MANIFEST_BYTES)).toString('utf8');
    await checkInside(file, folder);
  } catch (error) {
    missing.push(`model.json cannot be read: ${codeOf(error)}`);
  }
  hash.update(text);
  const { value: manifest, problems } = readManifest(text, id, revision);
  const cascade = readCascade(manifest, problems);
  const all = missing.length > 0 ? missing : problems.map((problem) => `model.json: ${problem}`);
  for (const [name, expected] of manifest.files) {
    try {
      const { size, mtimeMs, ino } = await statRegular(join(folder, name));
      await checkInside(join(folder, name), folder);
      hash.update(`\n${name} ${size} ${mtimeMs} ${ino}`);
      if (size !== expected.bytes) all.push(`${name} has ${size} bytes, but model.json says ${expected.bytes}`);
    } catch (error) {
      all.push(`${name} cannot be read: ${codeOf(error)}`);
    }
  }
  return { folder, manifest, cascade, problems: all, signature: hash.digest('hex') };
}

async function folders(parent: string): Promise<readonly string[]> {
  const entries = await readdir(parent, { withFileTypes: true });
  return entries
    .filter((entry) => NAME_PATTERN.test(entry.name) && (entry.isDirectory() || entry.isSymbolicLink()))
    .map((entry) => entry.name)
    .sort(byName);
}

function codeOf(error: unknown): string {
  return error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.message) : String(error);
}

// Watches the models folder: by events of the file system, and by scans at intervals, since some file systems report no
// changes.

/** A folder being watched. */
export interface PackageWatch {
  /** Resolves after the first scan. */
  readonly scanned: Promise<void>;
  /** Scans now, or again if a scan is in progress. */
  scan(): void;
  close(): void;
}

/** What a watch needs. */
export interface PackageWatchOptions {
  readonly modelsDir: string;
  readonly logger: EngineLogger;
  /** Milliseconds between two scans that no event has caused. */
  readonly scanIntervalMs: number;
}

// Copying a package causes many events: the scan waits until they have paused for this many milliseconds.
const PAUSE = 200;

/** Scans at once, and calls `found` with all packages after every scan. */
export function createPackageWatch(
  { modelsDir, logger, scanIntervalMs }: PackageWatchOptions,
  found: (packages: readonly FoundPackage[]) => void,
): PackageWatch {
  let watcher: FSWatcher | undefined;
  let pausing: NodeJS.Timeout | undefined;
  let scanning = false;
  let again = false;
  let closed = false;

  const open = (): void => {
    if (watcher !== undefined || closed) return;
    try {
      watcher = watch(modelsDir, { recursive: true, persistent: false }, () => {
        clearTimeout(pausing);
        pausing = setTimeout(() => void scan(), PAUSE).unref();
      });
      watcher.on('error', (error) => {
        logger.warn({ modelsDir, problem: error.message }, 'the models folder can no longer be watched');
        watcher?.close();
        watcher = undefined;
      });
    } catch (error) {
      logger.debug({ modelsDir, problem: String(error) }, 'the models folder cannot be watched');
    }
  };

  const scan = async (): Promise<void> => {
    again = true;
    if (scanning) return;
    scanning = true;
    while (again && !closed) {
      again = false;
      open();
      try {
        const packages = await scanPackages(modelsDir);
        if (!closed) found(packages);
      } catch (error) {
        // Models go on being served: a folder that cannot be read for a moment is not an empty one.
        logger.error({ modelsDir, problem: String(error) }, 'the models folder cannot be read');
      }
    }
    scanning = false;
  };

  const timer = setInterval(() => void scan(), scanIntervalMs).unref();
  return {
    scanned: scan(),
    scan: () => void scan(),
    close() {
      closed = true;
      clearInterval(timer);
      clearTimeout(pausing);
      watcher?.close();
    },
  };
}
