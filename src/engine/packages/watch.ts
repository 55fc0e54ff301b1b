/**
 * Watches the models folder: by events of the file system, and by scans at intervals, since some file systems report no
 * changes.
 */
import { type FSWatcher, watch } from 'node:fs';
import type { EngineLogger } from '../logger.ts';
import { type FoundPackage, scanPackages } from './scan.ts';

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
