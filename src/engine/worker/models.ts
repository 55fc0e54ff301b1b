/**
 * The models that one engine process has loaded, and what it does with them. A model is served once it has made its
 * canary decision. One file: the life of a model here.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CostProfile } from '../cost-profile.ts';
import type { InferenceCalls, Unread } from '../engine.ts';
import { ChoiceVectorCache } from '../families/choice-vectors.ts';
import {
  ChoiceTooLong,
  type Family,
  type FamilyParts,
  type FamilyScores,
  type Graph,
  InputTooLong,
  JobStopped,
  type RunControl,
  unhindered,
} from '../families/family.ts';
import { readPremise } from '../families/premise.ts';
import { CallFailed, reasonOf } from '../families/remote/call-failed.ts';
import { type Canary, InvalidOptions, type Manifest, type UnreadRule } from '../packages/manifest.ts';
import { verifyFiles } from '../packages/regular-file.ts';
import { applyTemperature } from '../tempered.ts';
import { sharedTokenizer, type TextTokenizer } from '../text/tokenizer.ts';
import { RememberedCosts } from './cache.ts';
import { loadFamily } from './load-family.ts';
import type { JobResult, LoadMessage, PrepareMessage, ScoreMessage } from './messages.ts';
import { releaseSpare } from './release.ts';
import { contentOf, sharedGraph } from './shared-graphs.ts';

/** The outcome of a load. */
export type Loaded =
  | { readonly kind: 'loaded'; readonly profile: CostProfile }
  | { readonly kind: 'load_failed'; readonly problems: readonly string[]; readonly away?: boolean };

/** What a reader sees: no white space, control or character without width; U+2800 is Braille's empty cell. */
const SEEN = /[^\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** The scores of a job without choices. */
const NOTHING_SCORED: FamilyScores = { probabilities: new Float64Array(0), encoded: 0 };

interface LoadedModel {
  readonly manifest: Manifest;
  readonly family: Family;
  /** Called, once, when it is known whether the model decides as it should. */
  readonly settlements: Settlement[];
}

type Settlement = (sound: boolean) => Promise<void>;

/** Loads packages and runs jobs on them. */
export class LoadedModels {
  readonly #models = new Map<string, LoadedModel>();
  readonly #cache: ChoiceVectorCache;
  readonly #unready: (key: string, problems: readonly string[]) => void;
  readonly #cacheDir: string;

  /**
   * `cacheBytes` bounds the choice vectors of all models together. `unready` is called for a model whose server can no
   * longer decide. `cacheDir`: see cache.ts; without one everything is computed here.
   */
  constructor(
    cacheBytes: number,
    unready: (key: string, problems: readonly string[]) => void = () => {},
    cacheDir = '',
  ) {
    this.#cache = new ChoiceVectorCache(cacheBytes);
    this.#unready = unready;
    this.#cacheDir = cacheDir;
  }

  /**
   * Verifies, loads and, unless its profile is known, measures a package. One that is loaded already, because only its
   * server could not be asked, is just connected again. Never rejects.
   */
  async load({ key, folder, manifest, profile, proven, inDoubt }: Omit<LoadMessage, 'kind'>): Promise<Loaded> {
    const settlements: Settlement[] = [];
    try {
      let model = this.#models.get(key);
      if (model === undefined) {
        const inHand = { folder, manifest, verified: !proven, cacheDir: this.#cacheDir, settlements };
        model = await modelIn(inHand, (found) => this.#unready(key, found));
        this.#models.set(key, model);
      }
      const { server } = model.family;
      // A server that was away may have come back with another model.
      if (server !== undefined) this.#cache.forget(key);
      const found = await server?.connect();
      if (found !== undefined && found.problems.length > 0) return { kind: 'load_failed', ...found };
      const known = profile ?? (await profileOf(model, this.#cacheDir, inDoubt));
      await releaseSpare();
      return { kind: 'loaded', profile: known };
    } catch (error) {
      await this.unload(key);
      await settle(settlements, false);
      return { kind: 'load_failed', problems: error instanceof InvalidOptions ? error.problems : [reasonOf(error)] };
    }
  }

  async unload(key: string): Promise<void> {
    const model = this.#models.get(key);
    this.#models.delete(key);
    this.#cache.forget(key);
    await model?.family.dispose();
    await settle(model?.settlements, false);
  }

  /** Makes the package's canary decision. Resolves to the problem with it, or undefined. Never rejects. */
  async canary(key: string): Promise<string | undefined> {
    const model = this.#models.get(key);
    const canary = model?.manifest.canary;
    if (model === undefined || canary === undefined) return 'the model is not loaded';
    try {
      const { result, doubt } = await score(model, canary, 0, unhindered);
      const problem = doubt ?? canaryProblem(canary, result);
      if (problem !== undefined) return problem;
      await settle(model.settlements, true);
      model.family.server?.watch();
      return undefined;
    } catch (error) {
      return error instanceof CallFailed ? `the canary decision failed: ${reasonOf(error)}` : reasonOf(error);
    }
  }

  /**
   * Runs a job. While a job whose graphs run here pauses between pieces of its texts, one other such job may be run to
   * its end. `waited` is passed on to the result. Never rejects.
   */
  async run(
    message: ScoreMessage | PrepareMessage,
    waited: number,
    hooks: Pick<RunControl, 'checkpoint' | 'pause' | 'signal'>,
  ): Promise<JobResult> {
    const model = this.#models.get(message.key);
    if (model === undefined) return { kind: 'failed', message: `${message.key} is not loaded` };
    try {
      const deadline = performance.now() + message.timeLeft;
      const vectors = this.#cache.of(message.key, message.part);
      const control: RunControl = { ...hooks, deadline, vectors };
      if (message.kind === 'score') return (await score(model, message, waited, control)).result;
      await model.family.prepare(message.choices, control, message.all);
      return { kind: 'prepared' };
    } catch (error) {
      return resultOf(error, model.manifest);
    }
  }

  /** Whether a server scores the jobs of a model that is loaded. */
  isRemote(key: string): boolean {
    return this.#models.get(key)?.family.server !== undefined;
  }

  /** Counts of the inference calls since this was last called. */
  takeCounts(): readonly InferenceCalls[] {
    return [...this.#models.values()].flatMap(({ family }) => family.server?.takeCounts() ?? []);
  }
}

/** What a model's work costs: measured, or remembered from an earlier measurement unless that is in doubt. */
async function profileOf({ manifest, family }: LoadedModel, cacheDir: string, inDoubt: boolean): Promise<CostProfile> {
  if (cacheDir === '' || family.server !== undefined) return await family.profile();
  const { RUNTIME_VERSION } = await import('./runtime.ts');
  const costs = new RememberedCosts(cacheDir, manifest, RUNTIME_VERSION);
  const remembered = inDoubt ? undefined : await costs.read();
  if (remembered !== undefined) return remembered;
  const measured = await family.profile();
  await costs.write(measured);
  return measured;
}

/** The model of a package. Throws InvalidOptions, or what its family throws. */
async function modelIn(
  inHand: PackageInHand & { readonly manifest: Manifest },
  unready: FamilyParts['unready'],
): Promise<LoadedModel> {
  const { folder, manifest, verified, settlements } = inHand;
  const problems = verified ? await verifyFiles(folder, manifest.files) : [];
  if (problems.length > 0) throw new InvalidOptions(problems);
  const family = await loadFamily(manifest.family, partsOf(inHand, unready));
  if (manifest.unread === undefined || family.tokenizer.unreadShare !== undefined)
    return { manifest, family, settlements };
  await family.dispose();
  throw new InvalidOptions(['unread needs a tokenizer whose vocabulary has words: WordPiece or Unigram']);
}

async function settle(settlements: Settlement[] = [], sound: boolean): Promise<void> {
  for (const each of settlements.splice(0)) await each(sound);
}

/** A package in the process that loads it. */
interface PackageInHand {
  readonly folder: string;
  readonly manifest: Pick<Manifest, 'files' | 'limits' | 'options'>;
  /** Whether all its files were verified just now; if not, each is when it is read. */
  readonly verified: boolean;
  readonly cacheDir: string;
  /** Receives what is to be called when it is known whether the model decides as it should. */
  readonly settlements: Settlement[];
}

/** What a family is given of a package. */
function partsOf(inHand: PackageInHand, unready: FamilyParts['unready']): FamilyParts {
  const { folder, manifest, verified, cacheDir, settlements } = inHand;
  const pathOf = (file: string): string => {
    if (!manifest.files.has(file)) throw new InvalidOptions([`options name ${file}, which files does not list`]);
    return join(folder, file);
  };
  const verify = async (names: readonly string[]): Promise<void> => {
    if (verified) return;
    const files = [...manifest.files].filter(([name]) => names.includes(name));
    const problems = await verifyFiles(folder, new Map(files));
    if (problems.length > 0) throw new InvalidOptions(problems);
  };
  return {
    limits: manifest.limits,
    options: manifest.options,
    folder,
    unready,
    async tokenizer(file) {
      const path = pathOf(file);
      await verify([file]);
      return await sharedTokenizer(path, manifest.files.get(file)?.sha256 ?? file);
    },
    async json(file) {
      const path = pathOf(file);
      await verify([file]);
      return JSON.parse(await readFile(path, 'utf8'));
    },
    async graph(file, weights) {
      const path = pathOf(file);
      const others = weights?.map(pathOf);
      // Imported only when a graph is loaded: the runtime is the larger part of a process's memory.
      const { loadGraph } = await import('./runtime.ts');
      const content = await contentOf(path, file, manifest.files);
      const load = async (optimised?: string): Promise<Graph> => {
        await verify(content.names);
        return await loadGraph(path, others, optimised);
      };
      return await sharedGraph(content.digests, async () => {
        if (cacheDir === '') return await load();
        const { cachedGraph } = await import('./cached-graph.ts');
        const { graph, settle: settlement } = await cachedGraph(cacheDir, content.digests, !verified, load);
        if (settlement !== undefined) settlements.push(settlement);
        return graph;
      });
    },
    local: (family, options, limits) =>
      loadFamily(family, partsOf({ ...inHand, manifest: { files: manifest.files, options, limits } }, unready)),
  };
}

/** Makes a decision. `doubt`: why the numbers behind it cannot be trusted, if they cannot. */
async function score(
  { manifest, family }: LoadedModel,
  job: Pick<ScoreMessage, 'input' | 'instruction' | 'choices'> & Partial<Pick<ScoreMessage, 'vector'>>,
  waited: number,
  control: RunControl,
): Promise<{ readonly result: JobResult; readonly doubt?: string | undefined }> {
  const began = performance.now();
  const reading = await readPremise(family.tokenizer, job, manifest.limits.inputTokens, control);
  if (reading.kind !== 'read') return { result: reading };
  const { premise } = reading;
  const tokenized = performance.now();
  const { probabilities, vector, encoded, choiceTokens, doubt } =
    job.choices.length === 0 ? NOTHING_SCORED : await family.score(premise, job.choices, control);
  const unread = unreadOf(premise.input, family.tokenizer, manifest.unread);
  const result: JobResult = {
    kind: 'scored',
    // A text without a token, or of which nothing can be seen, says nothing for any choice.
    probabilities:
      premise.input.length === 0 || !SEEN.test(job.input)
        ? probabilities.map(() => 1 / probabilities.length)
        : applyTemperature(probabilities, unread?.temperature ?? 1),
    ...(job.vector === true && vector !== undefined ? { vector } : {}),
    inputTokens: premise.instruction.length + premise.input.length,
    unread: unread?.told,
    encoded,
    choiceTokens,
    waited,
    tokenize: tokenized - began,
    infer: performance.now() - tokenized,
  };
  return { result, doubt };
}

/** The result of a job that ended with an error. */
function resultOf(error: unknown, { limits }: Manifest): JobResult {
  if (error instanceof JobStopped) return { kind: 'canceled' };
  if (error instanceof ChoiceTooLong) {
    const { choice, tokens, limit } = error;
    return { kind: 'choice_too_long', choice, tokens, limit };
  }
  if (error instanceof InputTooLong) {
    const { tokens, limit = limits.inputTokens, atLeast } = error;
    return { kind: 'input_too_long', tokens: tokens ?? limit, limit, atLeast };
  }
  if (error instanceof CallFailed) return { kind: 'unavailable', message: error.message };
  return { kind: 'failed', message: reasonOf(error) };
}

/**
 * How much of the input the model has no words for, and the temperature that follows; undefined if its tokenizer cannot
 * tell.
 */
function unreadOf(
  input: readonly number[],
  { unreadShare }: TextTokenizer,
  rule: UnreadRule | undefined,
): { readonly told: Unread; readonly temperature: number } | undefined {
  if (unreadShare === undefined) return undefined;
  const share = unreadShare(input);
  const beyond = rule === undefined ? 0 : Math.max(0, share - rule.bound);
  return { told: { share, over: beyond > 0 }, temperature: Math.exp((rule?.pull ?? 0) * beyond) };
}

/** What is wrong with the canary's decision; undefined if it is the expected one. */
function canaryProblem({ choices, choice }: Canary, result: JobResult): string | undefined {
  if (result.kind !== 'scored') return `the canary decision ended as ${result.kind}`;
  const best = result.probabilities.indexOf(Math.max(...result.probabilities));
  const sound = result.probabilities.every((each) => each >= 0 && each <= 1);
  if (!sound) return 'the canary decision has probabilities outside 0 to 1';
  const chosen = choices[best];
  return chosen === choice ? undefined : `the canary chose "${chosen}" instead of "${choice}"`;
}
