/**
 * The folder in which engines keep what others would compute again: optimised graphs with their packed weights, and
 * what a model's work costs here. It is named by what it was made of, by which version, and on which processor; it is
 * checked whenever it is read. So a folder that is gone, full, read-only, broken or somebody else's costs time only.
 * Whatever is written gets a temporary name first, so that two servers can share a folder.
 */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import type { CostProfile } from '../cost-profile.ts';
import type { Manifest } from '../packages/manifest.ts';

/** Changes with the format of what is kept, and with how graphs are optimised and measured. */
const FORMAT = 1;
/** Milliseconds after which what no engine has used is removed. */
const UNUSED = 7 * 24 * 3_600_000;

/** The end of the name of what is not complete. */
export const DRAFT = '.new';

/** The name of what is made of `parts` here. */
export function entryName(parts: readonly unknown[]): string {
  return hash('sha256', JSON.stringify([FORMAT, process.version, processor(), parts])).slice(0, 32);
}

let known: readonly string[] | undefined;

/** What tells this processor from others: packed weights and the bits of an answer depend on its instructions. */
function processor(): readonly string[] {
  known ??= [process.arch, cpus()[0]?.model ?? '', instructions()];
  return known;
}

function instructions(): string {
  try {
    return /^(?:flags|Features)\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? '';
  } catch {
    return '';
  }
}

/** Notes that an entry is in use. */
export async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now);
}

/** Makes the folder and removes what no engine has used for long. Never rejects. */
export async function tidyCache(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(folder)) {
      const path = join(folder, name);
      const { mtimeMs } = await stat(path);
      if (Date.now() - mtimeMs > UNUSED) await rm(path, { recursive: true, force: true });
    }
  } catch {
    // Without the folder engines do everything themselves.
  }
}

/** The costs of a package's work on this machine, as an engine once measured them. */
export class RememberedCosts {
  readonly #path: string;

  /** `runtime` is the version of the runtime. */
  constructor(folder: string, { family, files, limits, options }: Manifest, runtime: string) {
    const made = [runtime, availableParallelism(), family, [...files], limits, options];
    this.#path = join(folder, `${entryName(made)}.json`);
  }

  /** Undefined if nothing is known that can be relied on. */
  async read(): Promise<CostProfile | undefined> {
    try {
      const text = await readFile(this.#path, 'utf8');
      const end = text.indexOf('\n');
      if (hash('sha256', text.slice(end + 1)) !== text.slice(0, end)) return undefined;
      await touch(this.#path);
      return JSON.parse(text.slice(end + 1));
    } catch {
      return undefined;
    }
  }

  /** Never rejects. */
  async write(profile: CostProfile): Promise<void> {
    const draft = `${this.#path}.${process.pid}${DRAFT}`;
    const text = JSON.stringify(profile);
    try {
      await writeSafely(draft, `${hash('sha256', text)}\n${text}`);
      await rename(draft, this.#path);
    } catch {
      await rm(draft, { force: true }).catch(() => {});
    }
  }
}

/** Writes a file that is on the disk when this resolves. */
export async function writeSafely(path: string, content: string | Uint8Array): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}
