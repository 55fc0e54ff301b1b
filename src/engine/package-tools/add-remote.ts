/**
 * Makes a package of a model at a server: writes how the server is asked, by a preset and what the operator says. Both
 * count only as far as the canary decision and the measurements of the check confirm them.
 */
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelLimits } from '../engine.ts';
import { messageOf } from '../errors.ts';
import type { EngineLogger } from '../options.ts';
import { packageNamed } from '../packages/cascade.ts';
import {
  type Canary,
  type DialectName,
  isLocal,
  isObject,
  type JsonObject,
  type Manifest,
} from '../packages/manifest.ts';
import { verifyFiles } from '../packages/regular-file.ts';
import { readPackage } from '../packages/scan.ts';
import { clearTokenAddress } from '../packages/servers.ts';
import { listPackages, type PackageSpeed } from './check.ts';
import { laidOver, USUAL_CANARY } from './pack.ts';
import { copyThose, newFolder, type PackagePlace, placePackage, writeManifest } from './place-package.ts';
import { bareTokenizer, plainTokenizer } from './plain-tokenizer.ts';
import { type Asked, askedAs, type ServerName } from './presets.ts';

/** What is to be added, and where. */
export interface AddRequest extends PackagePlace {
  /** Undefined where there is no preset: then `own` says how it is asked. */
  readonly server: ServerName | undefined;
  /** Undefined for the first that the server speaks. */
  readonly dialect: DialectName | undefined;
  /** `options.server` of the package. Paths of files are absolute. */
  readonly at: JsonObject;
  readonly model: string | undefined;
  /** The path of the model's `tokenizer.json`; undefined counts tokens by bytes. */
  readonly tokenizer: string | undefined;
  /** A local model of the same folder: `<id>` or `<id>@<revision>`. */
  readonly shortlist: string | undefined;
  readonly canary: Canary | undefined;
  /** The limits that the operator gave; the others are usual ones. */
  readonly limits: { readonly [K in keyof ModelLimits]?: number | undefined };
  readonly temperature: number | undefined;
  /**
   * Finds the temperature by decisions with the package, which is alone in a folder of models and has the temperature 1
   * until then. `usual`: what is usual for such models.
   */
  readonly fit: ((modelsDir: string, usual: number) => Promise<number>) | undefined;
  /** The operator's own options, which are laid over all others. */
  readonly own: JsonObject;
  readonly ownedBy: string;
  readonly isDefault: boolean;
  readonly logger: EngineLogger;
}

/** The package that was added. */
export interface Added {
  readonly folder: string;
  /** What the package says, for the operator. */
  readonly lines: readonly string[];
  readonly speed: PackageSpeed;
}

/** Not the usual name, which the shortlist's tokenizer may have. */
const TOKENIZER = 'server-tokenizer.json';
const USUAL_ROWS = 16;
const USUAL_BYTES = 4;
const MOST_CHOICES = 300;
const TEMPERATURE_OF_VECTORS = 0.05;

/** The tokens that frame a sequence of the model. */
interface Frame {
  readonly cls: number;
  readonly sep: number;
}

/** A tokenizer as the package has it; `frame` where rows are made here. */
interface PackageTokenizer {
  readonly text: string;
  readonly frame: Frame | undefined;
}

/**
 * Makes the package. Rejects with an Error that says what keeps the server from being used and what to do, and leaves
 * nothing behind.
 */
export async function addRemote(request: AddRequest): Promise<Added> {
  await newFolder(request);
  const asked = askedAs(request.server, request.dialect);
  const tokenizer = await tokenizerOf(request, asked.dialect);
  const shortlist =
    request.shortlist === undefined ? undefined : await shortlistOf(request.modelsDir, request.shortlist);
  const options = optionsOf(request, asked, tokenizer, shortlist);
  const limits = limitsOf(request, asked, options, shortlist);
  const write = async (folder: string): Promise<void> => {
    const files: string[] = [];
    if (tokenizer !== undefined) {
      await writeFile(join(folder, TOKENIZER), tokenizer.text);
      files.push(TOKENIZER);
    }
    if (shortlist !== undefined) files.push(...(await copyShortlist(shortlist, folder)));
    const { id, revision, ownedBy, isDefault, canary = USUAL_CANARY } = request;
    const placed = request.fit === undefined ? options : { ...options, temperature: 1 };
    await writeManifest(folder, files, {
      ...{ id, revision, family: 'remote', ownedBy, isDefault, limits, options: placed, canary },
    });
  };
  const settle = async (modelsDir: string, folder: string): Promise<void> => {
    if (request.fit === undefined) return;
    await writeTemperature(folder, await request.fit(modelsDir, Number(options.temperature)));
  };
  const lines = linesOf(request, asked, options, limits);
  const placed = await placePackage(request, { write, settle, logger: request.logger }).catch((error: unknown) => {
    throw new Error([messageOf(error), 'what the package said:', ...lines.map((each) => `  ${each}`)].join('\n'));
  });
  return { ...placed, lines };
}

/** The package's options: what is usual, then what the server is known for, then what the operator says. */
function optionsOf(
  { at, model, own, temperature }: AddRequest,
  { dialect, options: usual, preset }: Asked,
  tokenizer: PackageTokenizer | undefined,
  shortlist: LocalPackage | undefined,
): JsonObject {
  const known = laidOver(laidOver(usual, preset), {
    dialect,
    ...(model === undefined ? {} : { model }),
    ...(tokenizer === undefined ? { bytes_per_token: USUAL_BYTES } : { tokenizer: TOKENIZER }),
    ...(tokenizer?.frame === undefined ? {} : rowsOf(tokenizer.frame, own.returns ?? preset.returns)),
    ...(temperature === undefined ? {} : { temperature }),
    ...(shortlist === undefined ? {} : { shortlist: plainShortlist(shortlist.manifest) }),
    server: at,
  });
  const options = laidOver(known, own);
  if (shortlist === undefined || options.options !== undefined) return options;
  // A server that takes any number of choices gets those that are picked in one request.
  const { rows = USUAL_ROWS } = isObject(options.batch) ? options.batch : {};
  return laidOver({ batch: { rows, choices: rows } }, options);
}

/** What is sent of a decision where rows are made here: what encoders and cross-encoders are trained on. */
function rowsOf({ cls, sep }: Frame, returns: unknown): JsonObject {
  const joint = [cls, '{instruction}', sep, '{input}', sep];
  if (returns !== 'embedding') return { rows: { pair: [...joint, '{choice}', sep] } };
  return {
    rows: { choice: [cls, '{choice}', sep], input: [cls, '{input}', sep], joint },
    joint_weight: 0.2,
    temperature: TEMPERATURE_OF_VECTORS,
  };
}

/** The limits. Throws Error where the operator must give them, or a tokenizer: nothing else keeps a text whole. */
function limitsOf(
  { tokenizer, limits: given }: AddRequest,
  { limits: usual }: Asked,
  { cuts, options: cap }: JsonObject,
  shortlist: LocalPackage | undefined,
): ModelLimits {
  if (cuts === 'silently' && tokenizer === undefined) {
    throw new Error(
      "the server cuts a text that is too long and does not say so, and Umpire never cuts, so it has to count: --tokenizer FILE is needed, the model's tokenizer.json",
    );
  }
  if (cuts === 'silently' && (given.inputTokens === undefined || given.candidateTokens === undefined)) {
    throw new Error(
      'the server cuts a text that is too long and does not say so: --input-tokens N and --candidate-tokens N are needed, which together must leave room for the templates',
    );
  }
  const { inputTokens = usual.inputTokens, candidateTokens = usual.candidateTokens } = given;
  const most = shortlist?.manifest.limits.choices ?? (typeof cap === 'number' ? cap : MOST_CHOICES);
  return { inputTokens, candidateTokens, choices: given.choices ?? Math.min(MOST_CHOICES, most) };
}

/** What the operator is told of the package. */
function linesOf(
  request: AddRequest,
  { dialect, preset }: Asked,
  options: JsonObject,
  { inputTokens, candidateTokens, choices }: ModelLimits,
): readonly string[] {
  const said = Object.fromEntries(
    Object.keys({ ...preset, ...request.own }).flatMap((field) =>
      field === 'server' ? [] : [[field, options[field]]],
    ),
  );
  const address = clearTokenAddress(options);
  const guessed = request.fit === undefined && request.temperature === undefined;
  const cap = options.options ?? (isObject(options.batch) ? options.batch.choices : undefined);
  const among = request.shortlist === undefined ? '' : `, which ${request.shortlist} picks where there are more`;
  const counted =
    options.tokenizer === undefined
      ? `every ${options.bytes_per_token} bytes count as one`
      : 'counted by the tokenizer';
  return [
    `${dialect}${request.server === undefined ? '' : ` as ${request.server} speaks it`}: ${JSON.stringify(said)}`,
    `limits: ${inputTokens} input tokens, ${choices} choices of ${candidateTokens} tokens; ${counted}`,
    ...(cap === undefined ? [] : [`it is sent ${cap} choices at a time${among}`]),
    ...(guessed ? [`temperature ${options.temperature}, a usual one: --examples fits it`] : []),
    ...(address === undefined ? [] : [`the token goes to ${address} in clear: everybody in between can read it`]),
  ];
}

async function tokenizerOf({ tokenizer }: AddRequest, dialect: DialectName): Promise<PackageTokenizer | undefined> {
  const makesRows = dialect === 'open-inference';
  if (tokenizer === undefined && makesRows) {
    throw new Error(
      "--tokenizer FILE is needed, the model's tokenizer.json: rows are made here, and the protocol has no way to refuse a text that is too long",
    );
  }
  if (tokenizer === undefined) return undefined;
  const published = await readFile(tokenizer, 'utf8');
  if (!makesRows) return { text: bareTokenizer(published).text, frame: undefined };
  const { text, cls, sep } = plainTokenizer(published);
  return { text, frame: { cls, sep } };
}

interface LocalPackage {
  readonly folder: string;
  readonly manifest: Manifest;
}

/** A sound local package of the folder, by its name. Rejects with Error if there is none. */
async function shortlistOf(modelsDir: string, name: string): Promise<LocalPackage> {
  const listed = packageNamed(await listPackages(modelsDir), name);
  if (listed === undefined) throw new Error(`--shortlist: there is no package '${name}' in ${modelsDir}`);
  const { id, revision } = listed;
  const { folder, manifest, problems } = await readPackage(join(modelsDir, id, revision), id, revision);
  if (!isLocal(manifest.family)) throw new Error(`--shortlist: '${name}' is no local model; one is needed`);
  const all = problems.length > 0 ? problems : await verifyFiles(folder, manifest.files);
  if (all.length > 0) throw new Error(`--shortlist: '${name}' is broken: ${all.join('; ')}`);
  return { folder, manifest };
}

function plainShortlist({ family, limits, options }: Manifest): JsonObject {
  const { inputTokens, candidateTokens, choices } = limits;
  return { family, limits: { input_tokens: inputTokens, candidate_tokens: candidateTokens, choices }, options };
}

/** Copies what the local model loads, and its licences. Resolves to the names that the manifest has to list. */
async function copyShortlist({ folder: from, manifest }: LocalPackage, folder: string): Promise<readonly string[]> {
  const names = [...manifest.files.keys()];
  if (names.includes(TOKENIZER)) throw new Error(`--shortlist: the package has a file ${TOKENIZER}, too`);
  for (const name of names) await copyFile(join(from, name), join(folder, name));
  await copyThose(from, folder, [
    ['LICENSE', 'LICENSE'],
    ['NOTICE', 'NOTICE'],
    ['MODEL_CARD.md', 'SHORTLIST_CARD.md'],
  ]);
  return names;
}

async function writeTemperature(folder: string, temperature: number): Promise<void> {
  const file = join(folder, 'model.json');
  const manifest = JSON.parse(await readFile(file, 'utf8')) as { readonly options: JsonObject };
  const changed = { ...manifest, options: { ...manifest.options, temperature } };
  await writeFile(file, `${JSON.stringify(changed, null, 2)}\n`);
}
