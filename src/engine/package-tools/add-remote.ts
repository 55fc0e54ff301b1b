/**
 * Makes a package of a model at a server: asks the server what it is, and writes what was found. What a server says
 * counts only as far as the canary decision and the measurements of the check confirm it.
 */
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelLimits } from '../engine.ts';
import { messageOf } from '../errors.ts';
import type { JsonObject } from '../families/remote/http/parse-json.ts';
import { readServer } from '../families/remote/server-options.ts';
import type { EngineLogger } from '../options.ts';
import {
  type Canary,
  createChecker,
  type DialectName,
  InvalidOptions,
  isRemote,
  type Manifest,
} from '../packages/manifest.ts';
import { readPackage } from '../packages/scan.ts';
import { clearTokenAddress } from '../packages/servers.ts';
import { verifyFiles } from '../packages/verify.ts';
import { listPackages, type PackageSpeed } from './check.ts';
import { isObject, laidOver, USUAL_CANARY } from './pack.ts';
import { exists, newFolder, type PackagePlace, placePackage, writeManifest } from './place-package.ts';
import { bareTokenizer, plainTokenizer } from './plain-tokenizer.ts';
import type { Survey } from './survey/findings.ts';
import { type AskedLimits, limitsOf } from './survey/limits.ts';
import { surveyServer } from './survey/survey.ts';

/** What is to be added, and where. */
export interface AddRequest extends PackagePlace {
  readonly dialect: DialectName;
  /** `options.server` of the package, without a path. Paths of files are absolute. */
  readonly server: JsonObject;
  /** The path of requests; undefined to try the usual ones. */
  readonly path: string | undefined;
  readonly model: string | undefined;
  /** The path of the model's `tokenizer.json`; undefined counts tokens by bytes. */
  readonly tokenizer: string | undefined;
  /** A local model of the same folder: `<id>` or `<id>@<revision>`. */
  readonly shortlist: string | undefined;
  readonly canary: Canary | undefined;
  readonly limits: AskedLimits;
  readonly temperature: number | undefined;
  /**
   * Finds the temperature by decisions with the package, which is alone in a folder of models and has the temperature 1
   * until then. `usual`: what is usual for such models.
   */
  readonly fit: ((modelsDir: string, usual: number) => Promise<number>) | undefined;
  /** The operator's own options, which are laid over those that were found. */
  readonly own: JsonObject;
  readonly ownedBy: string;
  readonly isDefault: boolean;
  readonly logger: EngineLogger;
}

/** The package that was added. */
export interface Added {
  readonly folder: string;
  /** What was found, for the operator. */
  readonly lines: readonly string[];
  readonly speed: PackageSpeed;
}

/** Not the usual name, which the shortlist's tokenizer may have. */
const TOKENIZER = 'server-tokenizer.json';
const USUAL_ROWS = 16;

/** A tokenizer as the package has it. */
interface PackageTokenizer {
  readonly text: string;
  readonly frame: { readonly cls: number; readonly sep: number } | undefined;
}

/**
 * Makes the package. Rejects with an Error that says what keeps the server from being used and what to do, and leaves
 * nothing behind.
 */
export async function addRemote(request: AddRequest): Promise<Added> {
  await newFolder(request);
  const canary = request.canary ?? USUAL_CANARY;
  const tokenizer = await tokenizerOf(request);
  const shortlist =
    request.shortlist === undefined ? undefined : await shortlistOf(request.modelsDir, request.shortlist);
  const server = laidOver(request.server, isObject(request.own.server) ? request.own.server : {});
  const survey = await surveyServer(request.dialect, serverFrom(server), tokenizer?.frame, {
    path: typeof server.path === 'string' ? server.path : request.path,
    model: request.model,
    canary,
    own: request.own,
  });
  const { limits, cap, cuts, bytesPerToken, line } = limitsOf(survey, request.limits, {
    hasTokenizer: tokenizer !== undefined,
    shortlist: shortlist?.manifest.limits,
  });
  const found: JsonObject = {
    ...survey.options,
    ...(cap === undefined ? {} : { options: cap }),
    ...(cap === undefined && shortlist !== undefined ? { batch: shortBatch(survey.options) } : {}),
    server: { ...server, ...(survey.path === undefined ? {} : { path: survey.path }) },
    ...(cuts === undefined ? {} : { cuts }),
    ...(tokenizer === undefined ? { bytes_per_token: bytesPerToken } : { tokenizer: TOKENIZER }),
    temperature: request.fit === undefined ? (request.temperature ?? survey.temperature) : 1,
    ...(shortlist === undefined ? {} : { shortlist: plainShortlist(shortlist.manifest) }),
  };
  const options = laidOver(found, request.own);

  const write = async (folder: string): Promise<void> => {
    const files: string[] = [];
    if (tokenizer !== undefined) {
      await writeFile(join(folder, TOKENIZER), tokenizer.text);
      files.push(TOKENIZER);
    }
    if (shortlist !== undefined) files.push(...(await copyShortlist(shortlist, folder)));
    const { id, revision, ownedBy, isDefault } = request;
    await writeManifest(folder, files, { id, revision, family: 'remote', ownedBy, isDefault, limits, options, canary });
  };
  const settle = async (modelsDir: string, folder: string): Promise<void> => {
    if (request.fit === undefined) return;
    await writeTemperature(folder, await request.fit(modelsDir, survey.temperature));
  };
  const lines = linesOf(request, { survey, options, limits, cap, longTexts: line });
  const placed = await placePackage(request, { write, settle, logger: request.logger }).catch((error: unknown) => {
    throw new Error([messageOf(error), 'what was found:', ...lines.map((each) => `  ${each}`)].join('\n'));
  });
  return { ...placed, lines };
}

/** What the lines for the operator are made from. */
interface Told {
  readonly survey: Survey;
  readonly options: JsonObject;
  readonly limits: ModelLimits;
  readonly cap: number | undefined;
  readonly longTexts: string | undefined;
}

function linesOf(request: AddRequest, { survey, options, limits, cap, longTexts }: Told): readonly string[] {
  const { inputTokens, candidateTokens, choices } = limits;
  const address = clearTokenAddress(options);
  const guessed = request.fit === undefined && request.temperature === undefined;
  const among = request.shortlist === undefined ? '' : `, which ${request.shortlist} picks where there are more`;
  return [
    ...survey.lines,
    ...(longTexts === undefined ? [] : [longTexts]),
    `limits: ${inputTokens} input tokens, ${choices} choices of ${candidateTokens} tokens; ${countedBy(options)}`,
    ...(cap === undefined ? [] : [`it is sent ${cap} choices at a time${among}`]),
    ...(guessed ? [`temperature ${survey.temperature}, a usual one: --examples fits it`] : []),
    ...(address === undefined ? [] : [`the token goes to ${address} in clear: everybody in between can read it`]),
  ];
}

function countedBy({ tokenizer, bytes_per_token: bytes }: JsonObject): string {
  if (tokenizer !== undefined) return 'counted by the tokenizer';
  return bytes === 1 ? 'every byte counts as one' : `every ${bytes} bytes count as one`;
}

/** Reads the server's options, without paths. Throws InvalidOptions. */
function serverFrom(server: JsonObject) {
  const problems: string[] = [];
  const { path: _, health: __, ...common } = server;
  const read = readServer(createChecker({ server: common }, '', problems));
  if (problems.length > 0) throw new InvalidOptions(problems);
  return read;
}

async function tokenizerOf({ tokenizer, dialect }: AddRequest): Promise<PackageTokenizer | undefined> {
  if (tokenizer === undefined) return undefined;
  const published = await readFile(tokenizer, 'utf8');
  if (dialect !== 'open-inference') return { text: bareTokenizer(published).text, frame: undefined };
  const { text, cls, sep } = plainTokenizer(published);
  return { text, frame: { cls, sep } };
}

interface LocalPackage {
  readonly folder: string;
  readonly manifest: Manifest;
}

/** A sound local package of the folder, by its name. Rejects with Error if there is none. */
async function shortlistOf(modelsDir: string, name: string): Promise<LocalPackage> {
  const listed = (await listPackages(modelsDir)).find(
    ({ id, revision, isDefault }) => name === `${id}@${revision}` || (isDefault && name === id),
  );
  if (listed === undefined) throw new Error(`--shortlist: there is no package '${name}' in ${modelsDir}`);
  const { id, revision } = listed;
  const { folder, manifest, problems } = await readPackage(join(modelsDir, id, revision), id, revision);
  if (isRemote(manifest.family))
    throw new Error(`--shortlist: '${name}' is at a server itself; a local model is needed`);
  const all = problems.length > 0 ? problems : await verifyFiles(folder, manifest.files);
  if (all.length > 0) throw new Error(`--shortlist: '${name}' is broken: ${all.join('; ')}`);
  return { folder, manifest };
}

/** A server that takes any number of choices gets those that are picked in one request. */
function shortBatch({ batch }: JsonObject): JsonObject {
  const { rows = USUAL_ROWS } = isObject(batch) ? batch : {};
  return { rows, choices: rows };
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
  for (const [name, as] of [
    ['LICENSE', 'LICENSE'],
    ['NOTICE', 'NOTICE'],
    ['MODEL_CARD.md', 'SHORTLIST_CARD.md'],
  ] as const) {
    if (await exists(join(from, name))) await copyFile(join(from, name), join(folder, as));
  }
  return names;
}

async function writeTemperature(folder: string, temperature: number): Promise<void> {
  const file = join(folder, 'model.json');
  const manifest = JSON.parse(await readFile(file, 'utf8')) as { readonly options: JsonObject };
  const changed = { ...manifest, options: { ...manifest.options, temperature } };
  await writeFile(file, `${JSON.stringify(changed, null, 2)}\n`);
}
