/** The models that one engine process has loaded, and what it does with them. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CostProfile } from '../cost-profile.ts';
import type { Unread } from '../engine.ts';
import { createChoiceVectorCache } from '../families/choice-vectors.ts';
import {
  ChoiceTooLong,
  type Family,
  InvalidOptions,
  JobStopped,
  type RunControl,
  type TextTokenizer,
  unhindered,
} from '../families/family.ts';
import { readPremise } from '../families/premise.ts';
import { loadFamily } from '../families/registry.ts';
import { canaryProblem } from '../packages/canary.ts';
import type { Manifest, UnreadRule } from '../packages/manifest.ts';
import { verifyFiles } from '../packages/verify.ts';
import { applyTemperature } from '../tempered.ts';
import type { JobResult, LoadMessage, PrepareMessage, ScoreMessage } from './messages.ts';
import { loadGraph } from './runtime.ts';
import { sharedTokenizer } from './tokenizer.ts';

/** What a load came to. */
export type Loaded =
  | { readonly kind: 'loaded'; readonly profile: CostProfile }
  | { readonly kind: 'load_failed'; readonly problems: readonly string[] };

/** Loads packages and runs jobs on them, one at a time. */
export interface LoadedModels {
  /** Verifies, loads and, unless its profile is known, measures a package. Never rejects. */
  load(message: Omit<LoadMessage, 'kind'>): Promise<Loaded>;
  unload(key: string): Promise<void>;
  /** Makes the package's canary decision: the problem with it, or undefined. Never rejects. */
  canary(key: string): Promise<string | undefined>;
  /** Runs a job. `waited` is passed on. Never rejects. */
  run(
    message: ScoreMessage | PrepareMessage,
    waited: number,
    control: Pick<RunControl, 'checkpoint'>,
  ): Promise<JobResult>;
}

interface LoadedModel {
  readonly manifest: Manifest;
  readonly family: Family;
}

/** `cacheBytes` bounds the choice vectors of all models together. */
export function createLoadedModels(cacheBytes: number): LoadedModels {
  const models = new Map<string, LoadedModel>();
  const cache = createChoiceVectorCache(cacheBytes);

  const score = async (
    { manifest, family }: LoadedModel,
    job: Pick<ScoreMessage, 'input' | 'instruction' | 'choices'> & Partial<Pick<ScoreMessage, 'vector'>>,
    waited: number,
    control: RunControl,
  ): Promise<JobResult> => {
    const began = performance.now();
    const reading = await readPremise(family.tokenizer, job, manifest.limits.inputTokens, control);
    if (reading.kind !== 'read') return reading;
    const { premise } = reading;
    const tokenized = performance.now();
    const { probabilities, vector, encoded } = await family.score(premise, job.choices, control);
    const unread = unreadOf(premise.input, family.tokenizer, manifest.unread);
    return {
      kind: 'scored',
      probabilities: applyTemperature(probabilities, unread?.temperature ?? 1),
      ...(job.vector === true && vector !== undefined ? { vector } : {}),
      inputTokens: premise.instruction.length + premise.input.length,
      unread: unread?.told,
      encoded,
      waited,
      tokenize: tokenized - began,
      infer: performance.now() - tokenized,
    };
  };

  return {
    async load({ key, folder, manifest, profile }) {
      try {
        const problems = await verifyFiles(folder, manifest.files);
        if (problems.length > 0) return { kind: 'load_failed', problems };
        const pathOf = (file: string): string => {
          if (!manifest.files.has(file)) throw new InvalidOptions([`options name ${file}, which files does not list`]);
          return join(folder, file);
        };
        const family = await loadFamily(manifest.family, {
          limits: manifest.limits,
          options: manifest.options,
          tokenizer: (file) => sharedTokenizer(pathOf(file), manifest.files.get(file)?.sha256 ?? file),
          json: async (file) => JSON.parse(await readFile(pathOf(file), 'utf8')),
          graph: (file, weights) => loadGraph(pathOf(file), weights && pathOf(weights)),
        });
        models.set(key, { manifest, family });
        if (manifest.unread !== undefined && family.tokenizer.unreadShare === undefined) {
          throw new InvalidOptions(['unread needs a tokenizer whose vocabulary has words: WordPiece or Unigram']);
        }
        return { kind: 'loaded', profile: profile ?? (await family.profile()) };
      } catch (error) {
        await this.unload(key);
        return { kind: 'load_failed', problems: error instanceof InvalidOptions ? error.problems : [messageOf(error)] };
      }
    },

    async unload(key) {
      const model = models.get(key);
      models.delete(key);
      cache.forget(key);
      await model?.family.dispose();
    },

    async canary(key) {
      const model = models.get(key);
      if (model === undefined) return 'the model is not loaded';
      try {
        const { canary } = model.manifest;
        return canaryProblem(canary, await score(model, canary, 0, unhindered));
      } catch (error) {
        return messageOf(error);
      }
    },

    async run(message, waited, { checkpoint }) {
      const model = models.get(message.key);
      if (model === undefined) return { kind: 'failed', message: `${message.key} is not loaded` };
      try {
        const control: RunControl = { checkpoint, vectors: cache.of(message.key, message.part) };
        if (message.kind === 'score') return await score(model, message, waited, control);
        await model.family.prepare(message.choices, control);
        return { kind: 'prepared' };
      } catch (error) {
        if (error instanceof JobStopped) return { kind: 'canceled' };
        if (error instanceof ChoiceTooLong) {
          const { choice, tokens } = error;
          return { kind: 'choice_too_long', choice, tokens, limit: model.manifest.limits.candidateTokens };
        }
        return { kind: 'failed', message: messageOf(error) };
      }
    },
  };
}

/** What the model has no words for, and the temperature of that; undefined if its tokenizer cannot tell. */
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

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
