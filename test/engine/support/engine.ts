/** Engines for tests: the real pool with real child processes. */
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { createEngine } from '../../../src/engine/create-engine.ts';
import type { Engine, JobTerms, ScoreJob, ScoreOutcome } from '../../../src/engine/engine.ts';
import type { EngineLogger, EngineOptions } from '../../../src/engine/options.ts';
import { ENGINE_CACHE, modelsDir } from '../../support/models-dir.ts';

/** The packages that the service ships with. */
export const shippedModels = fileURLToPath(new URL('../../../models', import.meta.url));

/** What was logged. */
export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** An engine that ends with its test, and its log. */
export interface TestEngine extends Engine {
  readonly log: readonly LogLine[];
}

const ignore = () => {};
export const SILENT: EngineLogger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** An engine with some of the packages that are shipped, all of which are ready; whoever starts it closes it. */
export async function startShipped(...ids: readonly string[]): Promise<Engine> {
  const shared = { modelsDir: modelsDir(...ids), cacheDir: ENGINE_CACHE };
  const engine = await createEngine({ ...shared, engines: 1, niceness: 0, logger: SILENT });
  await eventually(() => engine.ready() && engine.models().every(({ status }) => status === 'ready'), 120_000);
  return engine;
}

/** Starts an engine; with `until: 'ready'`, the default, waits for all its models. */
export async function startEngine(
  t: ExecutionContext<unknown>,
  options: Partial<EngineOptions> & { readonly modelsDir: string },
  until: 'ready' | 'started' = 'ready',
): Promise<TestEngine> {
  const log: LogLine[] = [];
  const level = (name: LogLine['level']) => (fields: object, message: string) => {
    log.push({ level: name, message, fields: { ...fields } });
  };
  const logger: EngineLogger = {
    debug: level('debug'),
    info: level('info'),
    warn: level('warn'),
    error: level('error'),
  };
  const engine = await createEngine({ engines: 1, logger, niceness: 0, ...options });
  t.teardown(() => engine.close());
  if (until === 'ready')
    await eventually(() => engine.ready() && engine.models().every(({ status }) => status !== 'unavailable'));
  return { ...engine, log };
}

/** A job for a model; choices are put in code-unit order. */
export function job(overrides: Partial<ScoreJob> = {}): ScoreJob {
  const choices = [...(overrides.choices ?? ['abc', 'xyz'])].sort();
  return { model: 'tiny', revision: 'r1', input: 'abc abd', instruction: 'which', ...overrides, choices };
}

/** Terms of a patient anonymous caller. */
export function terms(overrides: Partial<JobTerms> & { readonly within?: number } = {}): JobTerms {
  const { within = 30_000, ...rest } = overrides;
  return {
    signal: new AbortController().signal,
    deadline: performance.now() + within,
    tenant: 'a',
    keyed: false,
    ...rest,
  };
}

/** The probabilities of an outcome by choice. Throws if it is not a decision. */
export function probabilitiesOf({ choices }: ScoreJob, outcome: ScoreOutcome): Readonly<Record<string, number>> {
  if (outcome.kind !== 'scored') throw new Error(`not a decision: ${outcome.kind}`);
  return Object.fromEntries(choices.map((choice, i) => [choice, outcome.probabilities[i] ?? Number.NaN]));
}

/** Waits until something holds; fails after `patience` milliseconds. */
export async function eventually(holds: () => boolean, patience = 45_000): Promise<void> {
  for (const end = performance.now() + patience; !holds(); ) {
    if (performance.now() > end) throw new Error(`did not come to hold within ${patience} ms: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
