/**
 * An engine whose scores are a function: no process, no model, no queue. It keeps the promises of the interface that
 * callers can see: a job that has passed its deadline or was cancelled gets no answer, a model that is not served is
 * unavailable, and a job is released once.
 */
import type { Engine, JobTerms, ModelRevision, ScoreJob, ScoreOutcome } from '../engine/engine.ts';
import { EngineClosing, JobCanceled, JobDeadlinePassed, ModelUnavailable } from '../engine/errors.ts';

/** The functions that such an engine is made of. */
export interface FunctionEngineOptions {
  /** In code-unit order of id and revision; the same array until something changes. */
  readonly models: () => readonly ModelRevision[];
  readonly score: (job: ScoreJob, terms: JobTerms) => ScoreOutcome | Promise<ScoreOutcome>;
  /** Default: every choice is accepted. */
  readonly prepare?: Engine['prepare'];
  /** Default: the engine is ready until it is closed. */
  readonly ready?: () => boolean;
  readonly reload?: () => void;
}

/** Seconds after which a caller may ask for an unavailable model again. */
const RETRY_AFTER = 1;

/** An engine over a function. */
export function createFunctionEngine(options: FunctionEngineOptions): Engine {
  const { models, score, prepare, ready, reload } = options;
  let closed = false;
  const assertOpen = ({ model, revision }: Pick<ScoreJob, 'model' | 'revision'>, terms: JobTerms): void => {
    if (closed) throw new EngineClosing();
    if (terms.signal.aborted) throw new JobCanceled();
    if (terms.deadline <= performance.now()) throw new JobDeadlinePassed();
    const served = models().find((candidate) => candidate.id === model && candidate.revision === revision);
    if (served?.status !== 'ready') throw new ModelUnavailable(`${model}@${revision} is not served`, RETRY_AFTER);
  };
  return {
    models,
    async score(job, terms) {
      try {
        assertOpen(job, terms);
        return await score(job, terms);
      } finally {
        terms.released?.();
      }
    },
    async prepare(job, terms) {
      assertOpen(job, terms);
      return (await prepare?.(job, terms)) ?? { kind: 'prepared' };
    },
    crowded: () => undefined,
    ready: () => !closed && (ready?.() ?? true),
    stats: () => ({
      queue: { jobs: 0, cost: 0 },
      engines: [],
      busy: 0,
      replacements: 0,
      restarts: 0,
      abandoned: { stuck: 0, crashed: 0 },
      choices: { encoded: 0, cached: 0 },
      inference: [],
    }),
    reload: () => reload?.(),
    async close() {
      closed = true;
    },
  };
}
