/**
 * Puts a new package into the folder of models: it is written beside the others, checked as the service would load it,
 * and moved into its place in one step, so that a running service sees it whole or not at all.
 */
import { createHash } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ModelLimits } from '../engine.ts';
import { DEFAULT_DEADLINE, type EngineLogger } from '../options.ts';
import { type Canary, type FamilyName, NAME_PATTERN } from '../packages/manifest.ts';
import { checkPackage, type PackageSpeed } from './check.ts';

/** Where a package is placed. */
export interface PackagePlace {
  /** The folder of model packages. */
  readonly modelsDir: string;
  readonly id: string;
  readonly revision: string;
}

/** A package in its place. */
export interface PlacedPackage {
  readonly folder: string;
  readonly speed: PackageSpeed;
}

/** What writes and finishes the package. */
export interface PackageWriter {
  /** Writes every file of it into an empty folder. */
  write(folder: string): Promise<void>;
  /** Called when the check has found it sound, with a folder of models that holds it alone, and its own folder. */
  settle?(modelsDir: string, folder: string): Promise<void>;
  readonly logger: EngineLogger;
}

/**
 * The beginning of the name of a folder in which a package is made. No model's name begins so, and the service does not
 * look into the folder.
 */
const STAGING = '.packing-';
/** No package takes this many milliseconds to be made: what is older was left by a command that was killed. */
const LONGEST_MAKING = 3_600_000;

const LOWER = 'lower limits help: --choices, --candidate-tokens, --input-tokens';
const AWAY = 'is it running, is that its address, and does it want https or a token?';

/**
 * The folder of a new package. Rejects with Error for a name that no package may have, and for a package that exists.
 */
export async function newFolder({ modelsDir, id, revision }: PackagePlace): Promise<string> {
  for (const [what, name] of [
    ['id', id],
    ['revision', revision],
  ] as const) {
    if (!NAME_PATTERN.test(name)) throw new Error(`the ${what} '${name}' must match ${NAME_PATTERN}`);
  }
  const folder = join(modelsDir, id, revision);
  if (await exists(folder)) throw new Error(`${folder} exists; a change is a new revision`);
  return folder;
}

/**
 * Makes a package. Rejects with an Error that lists every problem of it, or with what its writer throws, and leaves
 * nothing behind.
 */
export async function placePackage(
  place: PackagePlace,
  { write, settle, logger }: PackageWriter,
): Promise<PlacedPackage> {
  const { id, revision } = place;
  const { folder, made } = await placeMade(place, async (staging, staged) => {
    await write(staged);
    const check = await checkPackage(
      // A package is made for slower machines than this one, too: they may take three times as long.
      { modelsDir: staging, logger, largestRequestMs: DEFAULT_DEADLINE },
      id,
      revision,
    );
    if (check.kind !== 'sound') {
      const remedy = check.kind === 'server_away' ? [AWAY] : check.tooLarge === true ? [LOWER] : [];
      throw new Error([...check.problems, ...remedy].join('\n'));
    }
    await settle?.(staging, staged);
    return check.speed;
  });
  return { folder, speed: made };
}

/**
 * Has a package made, in an empty folder that lies in a folder of models of its own, and moves it into its place.
 * Rejects with what `make` throws, and leaves nothing behind.
 */
export async function placeMade<T>(
  place: PackagePlace,
  make: (modelsDir: string, folder: string) => Promise<T>,
): Promise<{ readonly folder: string; readonly made: T }> {
  const { modelsDir, id, revision } = place;
  const folder = await newFolder(place);
  await mkdir(modelsDir, { recursive: true });
  await removeLeftovers(modelsDir);
  const staging = await mkdtemp(join(modelsDir, STAGING));
  try {
    const staged = join(staging, id, revision);
    await mkdir(staged, { recursive: true });
    const made = await make(staging, staged);
    await mkdir(dirname(folder), { recursive: true });
    // Fails if somebody else was faster.
    await rename(staged, folder);
    return { folder, made };
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** Removes what killed commands have left behind. */
async function removeLeftovers(modelsDir: string): Promise<void> {
  const names = (await readdir(modelsDir)).filter((name) => name.startsWith(STAGING));
  for (const folder of names.map((name) => join(modelsDir, name))) {
    // Another command may remove it, too.
    const { mtimeMs } = await stat(folder).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
    if (Date.now() - mtimeMs > LONGEST_MAKING) await rm(folder, { recursive: true, force: true });
  }
}

/** What a manifest says, except for its files. */
export interface ManifestSource {
  readonly id: string;
  readonly revision: string;
  readonly family: FamilyName;
  readonly ownedBy: string;
  readonly isDefault: boolean;
  readonly options: Readonly<Record<string, unknown>>;
  /** Undefined for a cascade, which has no files either. */
  readonly limits?: ModelLimits;
  readonly canary?: Canary;
}

/** Writes `model.json` into a folder; it lists these files of it. */
export async function writeManifest(
  folder: string,
  files: readonly string[],
  { id, revision, family, ownedBy, isDefault, limits, options, canary }: ManifestSource,
): Promise<void> {
  const entries = await Promise.all(files.map(async (name) => [name, await listed(join(folder, name))] as const));
  const manifest = {
    schema: 1,
    id,
    revision,
    family,
    owned_by: ownedBy,
    status: 'ready',
    default: isDefault,
    limits: limits && {
      input_tokens: limits.inputTokens,
      candidate_tokens: limits.candidateTokens,
      choices: limits.choices,
    },
    files: limits && Object.fromEntries(entries),
    options,
    canary,
  };
  await writeFile(join(folder, 'model.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** A file's entry in a manifest. */
async function listed(path: string): Promise<{ readonly sha256: string; readonly bytes: number }> {
  const content = await readFile(path);
  return { sha256: createHash('sha256').update(content).digest('hex'), bytes: content.length };
}

/** Copies the files that are there, `[from, to]`, from one folder into another. */
export async function copyThose(
  from: string,
  to: string,
  names: readonly (readonly [from: string, to: string])[],
): Promise<void> {
  for (const [name, as] of names) if (await exists(join(from, name))) await copyFile(join(from, name), join(to, as));
}

/** Whether there is such a file or folder. */
export async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
