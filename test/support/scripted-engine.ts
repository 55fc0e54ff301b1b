/**
 * An engine whose answers a test writes itself, for what the real one cannot be brought to at will: failures, statuses,
 * jobs that wait. What a decision is worth is never tested with it.
 */
import type { Engine, JobTerms, ModelRevision, ScoreJob, ScoreOutcome } from '../../src/engine/engine.ts';
import { createFunctionEngine } from '../../src/mock/function-engine.ts';

/** How it answers a job. */
export type Script = (job: ScoreJob, terms: JobTerms) => Promise<ScoreOutcome> | ScoreOutcome;

export interface ScriptedEngine extends Engine {
  /** The jobs so far. */
  readonly jobs: readonly ScoreJob[];
  script: Script;
  list: readonly ModelRevision[];
  isReady: boolean;
  reloads: number;
}

const LIMITS = { inputTokens: 500, candidateTokens: 128, choices: 300 };

/**
 * The revisions that it serves unless a test says otherwise: one ready model of two revisions, one
 * unavailable, one disabled.
 */
export const SCRIPTED_MODELS: readonly ModelRevision[] = [
  { id: 'gone', revision: 'r1', isDefault: true, ownedBy: 'umpire', status: 'unavailable', limits: LIMITS },
  {
    id: 'minilm-l6',
    revision: 'r1',
    isDefault: true,
    ownedBy: 'umpire',
    languages: ['en'],
    status: 'ready',
    limits: LIMITS,
  },
  {
    id: 'minilm-l6',
    revision: 'r2',
    isDefault: false,
    ownedBy: 'umpire',
    status: 'ready',
    limits: { ...LIMITS, choices: 10 },
  },
  { id: 'off', revision: 'r1', isDefault: true, ownedBy: 'umpire', status: 'disabled', limits: LIMITS },
];

/** The first choice in code-unit order gets the most. */
export const descending: Script = ({ choices }) => ({
  kind: 'scored',
  probabilities: Float64Array.from(choices, (_, index) => 2 ** -Math.min(index, 60)),
  inputTokens: 24,
  timings: { queue: 0, tokenize: 0, infer: 0 },
});

/** An engine that answers by its script. */
export function createScriptedEngine(script: Script = descending): ScriptedEngine {
  const jobs: ScoreJob[] = [];
  const engine: ScriptedEngine = {
    ...createFunctionEngine({
      models: () => engine.list,
      ready: () => engine.isReady,
      reload: () => {
        engine.reloads += 1;
      },
      score: (job, terms) => {
        jobs.push(job);
        return engine.script(job, terms);
      },
    }),
    jobs,
    script,
    list: SCRIPTED_MODELS,
    isReady: true,
    reloads: 0,
  };
  return engine;
}
