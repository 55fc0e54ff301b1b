/** An engine that a command starts for itself, beside the server's, to decide many texts; and where its models are. */
import { availableParallelism } from 'node:os';
import { MODEL_SETTINGS } from '../../config.ts';
import { findModel, qualifiedName } from '../../domain/models.ts';
import { readSettings } from '../../domain/settings.ts';
import { createEngine } from '../../engine/create-engine.ts';
import type { Engine, ModelRevision, ScoreOutcome } from '../../engine/engine.ts';
import { listPackages } from '../../engine/package-tools/check.ts';
import { SILENT_LOG } from '../../stores/stores.ts';
import type { Terminal } from '../command.ts';
import { type Example, type ExampleFile, type LineProblem, problemLines, refuse } from './examples.ts';

/** The engine's scores for a text. */
export type Scored = Extract<ScoreOutcome, { kind: 'scored' }>;

/** A text of a file, and its line there. */
type NumberedText = Pick<Example, 'line' | 'input' | 'instruction' | 'choices'>;

/** Scores texts with one revision of a model. */
export interface OwnEngine {
  readonly name: string;
  readonly revision: ModelRevision;
  /**
   * Everything that is wrong with a file, a problem a line, including texts that are too long for the model. Makes no
   * decisions.
   */
  problemsOf(file: Pick<ExampleFile, 'problems' | 'texts'>): Promise<readonly string[]>;
  /**
   * The scores of all texts, in their order. `choices`: of texts without their own, in code-unit order. Throws Error
   * with a line for each text that was refused.
   */
  scoreAll(texts: readonly NumberedText[], choices: readonly string[]): Promise<readonly Scored[]>;
  /**
   * Scores texts, and tells `heard` the outcome of each as it comes: its scores, why the model does not take it, or the
   * engine's error. Begins no more once the signal is aborted or `heard` throws, and throws the same when those in
   * progress have ended.
   */
  scoreEach(
    texts: readonly NumberedText[],
    choices: readonly string[],
    heard: (place: number, outcome: Scored | LineProblem | Error) => void,
    signal?: AbortSignal,
  ): Promise<void>;
  /** The texts that are too long to be choices of the model, each with its number of tokens. */
  tooLong(texts: readonly string[]): Promise<ReadonlyMap<string, number>>;
}

/** Milliseconds until a model must be loaded, on a busy machine, too. */
const LOAD_MS = 120_000;
/** Milliseconds that one decision may take, on a busy machine, too. */
const DECISION_MS = 120_000;
/** Engine processes, at most: each of them loads the model into memory of its own. */
const MOST_ENGINES = 8;

/**
 * Starts an engine, does `work` with it and closes it. Throws Error if the model cannot be loaded. `modelsDir`: the
 * folder of models, if it is not the one that the environment names.
 */
export async function withOwnEngine<T>(
  terminal: Terminal,
  model: string,
  work: (engine: OwnEngine) => Promise<T>,
  modelsDir = modelsFolder(terminal),
): Promise<T> {
  const engines = Math.min(MOST_ENGINES, availableParallelism());
  const engine = await createEngine({
    modelsDir,
    models: [model, ...(await stepsOf(modelsDir, model))],
    engines,
    inferenceServers: inferenceServersOf(terminal),
    logger: { ...SILENT_LOG, debug: () => {} },
  });
  const terms = (signal: AbortSignal[] = []) => ({
    signal: AbortSignal.any([AbortSignal.timeout(DECISION_MS), ...signal]),
    deadline: performance.now() + DECISION_MS,
    tenant: 'operator',
    keyed: true,
  });
  try {
    const revision = await readyRevision(engine, model);
    const name = qualifiedName(revision);
    // A cascade is ready before the last of its steps is.
    for (const step of await stepsOf(modelsDir, name)) await readyRevision(engine, step);
    const job = { model: revision.id, revision: revision.revision };
    const scoreEach: OwnEngine['scoreEach'] = (texts, choices, heard, signal) =>
      inLanes(texts, 2 * engines, async ({ line, input, instruction, choices: own = choices }, place) => {
        signal?.throwIfAborted();
        const asked = terms(signal === undefined ? [] : [signal]);
        const outcome = await engine
          .score({ ...job, input, instruction, choices: own, vector: true }, asked)
          .catch((error: Error) => error);
        if (outcome instanceof Error) signal?.throwIfAborted();
        if ('kind' in outcome && outcome.kind === 'choice_too_long')
          throw new Error(`a choice has more tokens than the model takes: ${JSON.stringify(outcome.choice)}`);
        if (outcome instanceof Error || outcome.kind === 'scored') {
          heard(place, outcome);
          return;
        }
        const tokens = `${outcome.atLeast ? 'more than ' : ''}${outcome.tokens}`;
        heard(place, { line, problem: `has ${tokens} tokens, the model takes at most ${outcome.limit}` });
      });
    const scoreAll = async (texts: readonly NumberedText[], choices: readonly string[]) => {
      const scored = new Array<Scored>(texts.length);
      const problems: LineProblem[] = [];
      await scoreEach(texts, choices, (place, outcome) => {
        if (outcome instanceof Error) throw outcome;
        if ('problem' in outcome) problems.push(outcome);
        else scored[place] = outcome;
      });
      return { scored, problems };
    };
    return await work({
      name,
      revision,
      scoreEach,
      problemsOf: async ({ problems, texts }) => problemLines([...problems, ...(await scoreAll(texts, [])).problems]),
      async scoreAll(texts, choices) {
        // An inference server may count tokens otherwise than the package's tokenizer, so problemsOf() may miss these.
        const { scored, problems } = await scoreAll(texts, choices);
        refuse(problems);
        return scored;
      },
      async tooLong(texts) {
        const found = new Map<string, number>();
        for (;;) {
          const choices = texts.filter((text) => !found.has(text)).toSorted();
          if (choices.length === 0) return found;
          const outcome = await engine.prepare({ ...job, choices }, terms());
          if (outcome.kind === 'prepared') return found;
          found.set(outcome.choice, outcome.tokens);
        }
      },
    });
  } finally {
    await engine.close();
  }
}

/** The steps of the cascades that a name may mean. */
async function stepsOf(modelsDir: string, model: string): Promise<readonly string[]> {
  const packages = await listPackages(modelsDir);
  return packages.flatMap(({ id, revision, steps }) => (model === id || model === `${id}@${revision}` ? steps : []));
}

/**
 * Works on things, so many at a time. Begins no more once one has failed, and throws what that threw when those in
 * progress have ended.
 */
async function inLanes<T>(things: readonly T[], lanes: number, work: (thing: T, place: number) => Promise<void>) {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let place = next++; place < things.length; place = next++) await work(things[place] as T, place);
  };
  const all = Array.from({ length: lanes }, () =>
    lane().finally(() => {
      next = things.length;
    }),
  );
  await Promise.allSettled(all);
  await Promise.all(all);
}

async function readyRevision(engine: Engine, model: string): Promise<ModelRevision> {
  for (const end = performance.now() + LOAD_MS; ; ) {
    const revision = findModel(engine.models(), model);
    if (revision === undefined || revision.status === 'disabled') throw new Error(`model '${model}' is not served`);
    if (revision.status === 'ready') return revision;
    if (performance.now() > end) {
      throw new Error(`model '${model}' cannot be loaded; 'umpire models check ${model}' says why`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The folder of model packages that the environment names. */
export function modelsFolder({ env }: Terminal): string {
  const { UMPIRE_MODELS_DIR } = MODEL_SETTINGS;
  return readSettings({ UMPIRE_MODELS_DIR }, env).value.UMPIRE_MODELS_DIR;
}

/** The addresses of inference servers that the environment names. @throws Error if they cannot be read. */
export function inferenceServersOf({ env }: Terminal): ReadonlyMap<string, string> {
  const { UMPIRE_INFERENCE_SERVERS } = MODEL_SETTINGS;
  const { value, problems } = readSettings({ UMPIRE_INFERENCE_SERVERS }, env);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return value.UMPIRE_INFERENCE_SERVERS;
}
