/**
 * The models that one engine process has loaded, and what it does with them. A model is served once it has made its
 * canary decision.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CostProfile } from '../cost-profile.ts';
import type { InferenceCalls, Unread } from '../engine.ts';
import { type ChoiceVectorCache, createChoiceVectorCache } from '../families/choice-vectors.ts';
import {
  ChoiceTooLong,
  type Family,
  type FamilyParts,
  type FamilyScores,
  InputTooLong,
  JobStopped,
  type RunControl,
  unhindered,
} from '../families/family.ts';
import { readPremise } from '../families/premise.ts';
import { CallFailed, reasonOf } from '../families/remote/call-failed.ts';
import { type Canary, InvalidOptions, type Manifest, type UnreadRule } from '../packages/manifest.ts';
import { verifyFiles } from '../packages/verify.ts';
import { applyTemperature } from '../tempered.ts';
import { sharedTokenizer, type TextTokenizer } from '../text/tokenizer.ts';
import { loadFamily } from './load-family.ts';
import type { JobResult, LoadMessage, PrepareMessage, ScoreMessage } from './messages.ts';
import { releaseSpare } from './release.ts';
import { contentOf, sharedGraph } from './shared-graphs.ts';

/** The outcome of a load. */
export type Loaded =
  | { readonly kind: 'loaded'; readonly profile: CostProfile }
  | { readonly kind: 'load_failed'; readonly problems: readonly string[]; readonly away?: boolean };

/** Loads packages and runs jobs on them. */
export interface LoadedModels {
  /**
   * Verifies, loads and, unless its profile is known, measures a package. One that is loaded already, because only its
   * server could not be asked, is just connected again. Never rejects.
   */
  load(message: Omit<LoadMessage, 'kind'>): Promise<Loaded>;
  unload(key: string): Promise<void>;
  /** Makes the package's canary decision. Resolves to the problem with it, or undefined. Never rejects. */
  canary(key: string): Promise<string | undefined>;
  /**
   * Runs a job. While a job whose graphs run here pauses between pieces of its texts, one other such job may be run to
   * its end. `waited` is passed on to the result. Never rejects.
   */
  run(
    message: ScoreMessage | PrepareMessage,
    waited: number,
    control: Pick<RunControl, 'checkpoint' | 'pause' | 'signal'>,
  ): Promise<JobResult>;
  /** Whether a server scores the jobs of a model that is loaded. */
  isRemote(key: string): boolean;
  /** Counts of the inference calls since this was last called. */
  takeCounts(): readonly InferenceCalls[];
}

/** The scores of a job without choices. */
const NOTHING_SCORED: FamilyScores = { probabilities: new Float64Array(0), encoded: 0 };

interface LoadedModel {
  readonly manifest: Manifest;
  readonly family: Family;
}

/**
 * `cacheBytes` bounds the choice vectors of all models together. `unready` is called for a model whose server can no
 * longer decide.
 */
export function createLoadedModels(
  cacheBytes: number,
  unready: (key: string, problems: readonly string[]) => void = () => {},
): LoadedModels {
  const models = new Map<string, LoadedModel>();
  const cache: ChoiceVectorCache = createChoiceVectorCache(cacheBytes);

  const unload = async (key: string): Promise<void> => {
    const model = models.get(key);
    models.delete(key);
    cache.forget(key);
    await model?.family.dispose();
  };

  return {
    async load({ key, folder, manifest, profile }) {
      try {
        let family = models.get(key)?.family;
        if (family === undefined) {
          const problems = await verifyFiles(folder, manifest.files);
          if (problems.length > 0) return { kind: 'load_failed', problems };
          family = await loadFamily(
            manifest.family,
            partsOf(folder, manifest, (found) => unready(key, found)),
          );
          models.set(key, { manifest, family });
          if (manifest.unread !== undefined && family.tokenizer.unreadShare === undefined) {
            throw new InvalidOptions(['unread needs a tokenizer whose vocabulary has words: WordPiece or Unigram']);
          }
        }
        // A server that was away may have come back with another model.
        if (family.server !== undefined) cache.forget(key);
        const found = await family.server?.connect();
        if (found !== undefined && found.problems.length > 0) return { kind: 'load_failed', ...found };
        const measured = profile ?? (await family.profile());
        await releaseSpare();
        return { kind: 'loaded', profile: measured };
      } catch (error) {
        await unload(key);
        return { kind: 'load_failed', problems: error instanceof InvalidOptions ? error.problems : [reasonOf(error)] };
      }
    },

    unload,

    async canary(key) {
      const model = models.get(key);
      if (model === undefined) return 'the model is not loaded';
      try {
        const { canary } = model.manifest;
        const { result, doubt } = await score(model, canary, 0, unhindered);
        const problem = doubt ?? canaryProblem(canary, result);
        if (problem === undefined) model.family.server?.watch();
        return problem;
      } catch (error) {
        return error instanceof CallFailed ? `the canary decision failed: ${reasonOf(error)}` : reasonOf(error);
      }
    },

    async run(message, waited, hooks) {
      const model = models.get(message.key);
      if (model === undefined) return { kind: 'failed', message: `${message.key} is not loaded` };
      try {
        const deadline = performance.now() + message.timeLeft;
        const vectors = cache.of(message.key, message.part);
        const control: RunControl = { ...hooks, deadline, vectors };
        if (message.kind === 'score') return (await score(model, message, waited, control)).result;
        await model.family.prepare(message.choices, control, message.all);
        return { kind: 'prepared' };
      } catch (error) {
        return resultOf(error, model.manifest);
      }
    },

    isRemote: (key) => models.get(key)?.family.server !== undefined,
    takeCounts: () => [...models.values()].flatMap(({ family }) => family.server?.takeCounts() ?? []),
  };
}

/** What a family is given of a package whose files were verified. */
function partsOf(
  folder: string,
  manifest: Pick<Manifest, 'files' | 'limits' | 'options'>,
  unready: FamilyParts['unready'],
): FamilyParts {
  const pathOf = (file: string): string => {
    if (!manifest.files.has(file)) throw new InvalidOptions([`options name ${file}, which files does not list`]);
    return join(folder, file);
  };
  return {
    limits: manifest.limits,
    options: manifest.options,
    folder,
    unready,
    tokenizer: (file) => sharedTokenizer(pathOf(file), manifest.files.get(file)?.sha256 ?? file),
    json: async (file) => JSON.parse(await readFile(pathOf(file), 'utf8')),
    async graph(file, weights) {
      const path = pathOf(file);
      // Imported only when a graph is loaded: the runtime is the larger part of a process's memory.
      const { loadGraph } = await import('./runtime.ts');
      const content = await contentOf(path, file, manifest.files);
      return await sharedGraph(content, () => loadGraph(path, weights?.map(pathOf)));
    },
    local: (family, options, limits) =>
      loadFamily(family, partsOf(folder, { files: manifest.files, options, limits }, unready)),
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
    probabilities: applyTemperature(probabilities, unread?.temperature ?? 1),
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
