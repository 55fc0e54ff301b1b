/**
 * Finds the model packages of a folder: `<models>/<id>/<revision>/model.json`. Reads manifests and file sizes only; the
 * contents of the files are verified by the process that loads them, so that what was verified is what runs.
 */
import { createHash } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../errors.ts';
import type { EngineSettings } from '../options.ts';
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

// Watches the models folder: by events of the file system, and by scans at intervals, since some file systems report no
// changes.

// Copying a package causes many events: the scan waits until they have paused for this many milliseconds.
const PAUSE = 200;

/** A folder that is watched from its first scan on. */
export class PackageWatch {
  readonly #settings: Pick<EngineSettings, 'modelsDir' | 'logger'>;
  readonly #found: (packages: readonly FoundPackage[]) => void;
  readonly #timer: NodeJS.Timeout;
  #watcher: FSWatcher | undefined;
  #pausing: NodeJS.Timeout | undefined;
  #scanning = false;
  #again = false;
  #closed = false;

  /** `found` is called with all packages after every scan. */
  constructor(
    settings: Pick<EngineSettings, 'modelsDir' | 'logger' | 'scanIntervalMs'>,
    found: (packages: readonly FoundPackage[]) => void,
  ) {
    this.#settings = settings;
    this.#found = found;
    this.#timer = setInterval(() => void this.scan(), settings.scanIntervalMs).unref();
  }

  /** Scans now, or again if a scan is in progress. Resolves after a scan that this call has begun. */
  async scan(): Promise<void> {
    const { modelsDir, logger } = this.#settings;
    this.#again = true;
    if (this.#scanning) return;
    this.#scanning = true;
    while (this.#again && !this.#closed) {
      this.#again = false;
      this.#open();
      try {
        const packages = await scanPackages(modelsDir);
        if (!this.#closed) this.#found(packages);
      } catch (error) {
        // Models go on being served: a folder that cannot be read for a moment is not an empty one.
        logger.error({ modelsDir, problem: String(error) }, 'the models folder cannot be read');
      }
    }
    this.#scanning = false;
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#pausing);
    this.#watcher?.close();
  }

  #open(): void {
    if (this.#watcher !== undefined || this.#closed) return;
    const { modelsDir, logger } = this.#settings;
    try {
      this.#watcher = watch(modelsDir, { recursive: true, persistent: false }, () => {
        clearTimeout(this.#pausing);
        this.#pausing = setTimeout(() => void this.scan(), PAUSE).unref();
      });
      this.#watcher.on('error', (error) => {
        logger.warn({ modelsDir, problem: error.message }, 'the models folder can no longer be watched');
        this.#watcher?.close();
        this.#watcher = undefined;
      });
    } catch (error) {
      logger.debug({ modelsDir, problem: String(error) }, 'the models folder cannot be watched');
    }
  }
}
