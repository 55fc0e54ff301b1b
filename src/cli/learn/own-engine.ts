/** An engine that a command starts for itself, beside the server's, to decide many texts; and where its models are. */
import { availableParallelism } from 'node:os';
import { MODEL_SETTINGS } from '../../config.ts';
import { ReadChoices } from '../../domain/catalog-cache.ts';
import { findModel, qualifiedName } from '../../domain/models.ts';
import { readSettings } from '../../domain/settings.ts';
import { createEngine } from '../../engine/create-engine.ts';
import type { Engine, JobTerms, ModelRevision, ScoreOutcome } from '../../engine/engine.ts';
import { listPackages } from '../../engine/package-tools/check.ts';
import type { CatalogRecord } from '../../stores/catalog-store.ts';
import { SILENT_LOG } from '../../stores/stores.ts';
import type { Terminal } from '../command.ts';
import { showProgress } from '../decide/decided-lines.ts';
import { type Example, type ExampleFile, type LineProblem, problemLines, refuse, type Text } from './examples.ts';

/** The engine's scores for a text, by choices in code-unit order. */
export type Scored = Extract<ScoreOutcome, { kind: 'scored' }>;

/** Scores, why the model does not take the text, or the engine's error. */
export type Heard = Scored | LineProblem | Error;

/** A text that may have choices of its own. */
type AnyText = Text & Pick<Example, 'choices'>;

/** What texts without choices of their own are decided by, with the descriptions that are read in place of choices. */
type Choices = Pick<CatalogRecord, 'choices' | 'additions'>;

/** Milliseconds until a model must be loaded, on a busy machine, too. */
const LOAD_MS = 120_000;
/** Milliseconds that one decision may take, on a busy machine, too. */
const DECISION_MS = 120_000;
/** Engine processes, at most: each of them loads the model into memory of its own. */
const MOST_ENGINES = 8;

/** Scores texts with one revision of a model. */
export class OwnEngine {
  readonly name: string;
  readonly revision: ModelRevision;
  readonly #engine: Engine;
  readonly #terminal: Terminal;
  readonly #lanes: number;

  /** `lanes`: decisions at a time. */
  constructor(engine: Engine, revision: ModelRevision, terminal: Terminal, lanes: number) {
    this.name = qualifiedName(revision);
    this.revision = revision;
    this.#engine = engine;
    this.#terminal = terminal;
    this.#lanes = lanes;
  }

  /**
   * Everything that is wrong with a file, a problem a line, including texts that are too long for the model. Makes no
   * decisions.
   */
  async problemsOf({ problems, texts }: Pick<ExampleFile, 'problems' | 'texts'>): Promise<readonly string[]> {
    return problemLines([...problems, ...(await this.scoreSome(texts, { choices: [] })).problems]);
  }

  /** The scores of all texts, in their order. Throws Error with a line for each text that was refused. */
  async scoreAll(texts: readonly AnyText[], by: Choices): Promise<readonly Scored[]> {
    // An inference server may count tokens otherwise than the package's tokenizer, so problemsOf() may miss these.
    const { scored, problems } = await this.scoreSome(texts, by);
    refuse(problems);
    return scored as readonly Scored[];
  }

  /** The scores of texts at their places, none of those that the model does not take, and why it does not. */
  async scoreSome(texts: readonly AnyText[], by: Choices) {
    const scored = new Array<Scored | undefined>(texts.length);
    const problems: LineProblem[] = [];
    await this.scoreEach(texts, by, (outcome, place) => {
      if (outcome instanceof Error) throw outcome;
      if ('problem' in outcome) problems.push(outcome);
      else scored[place] = outcome;
    });
    return { scored, problems };
  }

  /**
   * Scores texts, shows how far this has come, and tells `heard` the outcome of each as it comes. Begins no more once
   * the signal is aborted or `heard` throws, and throws the same when those in progress have ended.
   */
  async scoreEach(
    texts: readonly AnyText[],
    { choices, additions }: Choices,
    heard: (outcome: Heard, place: number) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    const { id: model, revision } = this.revision;
    const usual = new ReadChoices(choices.toSorted(), additions?.descriptions ?? {});
    const done = { lines: 0, errors: 0 };
    const progress = () => ({ ...done, share: (done.lines + done.errors) / texts.length });
    const endProgress = showProgress(this.#terminal, progress);
    await inLanes(texts, this.#lanes, async ({ line, input, instruction, choices: own }, place) => {
      signal?.throwIfAborted();
      const read = own === undefined ? usual : new ReadChoices(own, {});
      const asked = { model, revision, input, instruction, choices: read.texts, vector: true };
      const outcome = await this.#engine.score(asked, termsUntil(signal)).catch((error: Error) => error);
      if (outcome instanceof Error) signal?.throwIfAborted();
      const told = outcome instanceof Error ? outcome : toldOf(outcome, line, read);
      if ('kind' in told) done.lines++;
      else done.errors++;
      heard(told, place);
    }).finally(endProgress);
  }

  /** The texts that are too long to be choices of the model, each with its number of tokens. */
  async tooLong(texts: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const { id: model, revision } = this.revision;
    const found = new Map<string, number>();
    for (;;) {
      const choices = texts.filter((text) => !found.has(text)).toSorted();
      if (choices.length === 0) return found;
      const outcome = await this.#engine.prepare({ model, revision, choices }, termsUntil());
      if (outcome.kind === 'prepared') return found;
      found.set(outcome.choice, outcome.tokens);
    }
  }
}

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
  try {
    const revision = await readyRevision(engine, model);
    // A cascade is ready before the last of its steps is.
    for (const step of await stepsOf(modelsDir, qualifiedName(revision))) await readyRevision(engine, step);
    return await work(new OwnEngine(engine, revision, terminal, 2 * engines));
  } finally {
    await engine.close();
  }
}

/** On what terms the engine decides, until the signal is aborted at the latest. */
function termsUntil(signal?: AbortSignal): JobTerms {
  return {
    signal: AbortSignal.any([AbortSignal.timeout(DECISION_MS), ...(signal === undefined ? [] : [signal])]),
    deadline: performance.now() + DECISION_MS,
    tenant: 'operator',
    keyed: true,
  };
}

/** Scores, or why the model does not take the text of a line. Throws Error for choices that it does not take. */
function toldOf(outcome: ScoreOutcome, line: number, read: ReadChoices): Scored | LineProblem {
  if (outcome.kind === 'scored') return { ...outcome, probabilities: read.inOrder(outcome.probabilities) };
  if (outcome.kind === 'choice_too_long')
    throw new Error(`a choice has more tokens than the model takes: ${JSON.stringify(outcome.choice)}`);
  const tokens = `${outcome.atLeast ? 'more than ' : ''}${outcome.tokens}`;
  return { line, problem: `has ${tokens} tokens, the model takes at most ${outcome.limit}` };
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
    // Until all are loaded, the plain name may mean an older revision.
    if (revision.status === 'ready' && engine.ready()) return revision;
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
