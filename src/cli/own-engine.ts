/** An engine of the command's own, beside the server's, for commands that decide many texts. */
import { availableParallelism } from 'node:os';
import { createEngine } from '../engine/create-engine.ts';
import type { Engine, ModelRevision, ScoreOutcome } from '../engine/engine.ts';
import { SILENT_LOG } from '../stores/log.ts';
import type { Terminal } from './command.ts';
import { type Example, type ExampleFile, type LineProblem, problemLines } from './examples.ts';
import { inferenceServersOf, modelsFolder } from './models.ts';

/** What the engine says of a text. */
export type Scored = Extract<ScoreOutcome, { kind: 'scored' }>;

/** A text of a file, and its line there. */
type NumberedText = Pick<Example, 'line' | 'input' | 'instruction'>;

/** Scores texts with one revision of a model. */
export interface OwnEngine {
  readonly name: string;
  readonly revision: ModelRevision;
  /**
   * Everything that is wrong with a file, a problem a line: texts that the model does not take are,
   * too. Decides nothing.
   */
  problemsOf(file: Pick<ExampleFile, 'problems' | 'texts'>): Promise<readonly string[]>;
  /**
   * In the order of the texts. `choices` in code-unit order. What a text is refused for becomes a line of the error.
   */
  scoreAll(texts: readonly NumberedText[], choices: readonly string[]): Promise<readonly Scored[]>;
  /** Those of the texts that the model does not take as choices, each with how many tokens it has. */
  tooLong(texts: readonly string[]): Promise<ReadonlyMap<string, number>>;
}

/** Milliseconds for a model to load, and for one decision with it, both on a busy machine. */
const LOAD_MS = 120_000;
const DECISION_MS = 120_000;
const MOST_ENGINES = 8;

/**
 * Does work with an engine and closes it. Throws Error if the model cannot be had. `modelsDir`: where it is, if not in
 * the terminal's folder of models.
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
    models: [model],
    engines,
    inferenceServers: inferenceServersOf(terminal),
    logger: { ...SILENT_LOG, debug: () => {} },
  });
  const terms = () => ({
    signal: AbortSignal.timeout(DECISION_MS),
    deadline: performance.now() + DECISION_MS,
    tenant: 'operator',
    keyed: true,
  });
  try {
    const revision = await readyRevision(engine, model);
    const job = { model: revision.id, revision: revision.revision };
    const scoreAll = async (texts: readonly NumberedText[], choices: readonly string[]) => {
      const scored = new Array<Scored>(texts.length);
      const problems: LineProblem[] = [];
      let next = 0;
      const lane = async (): Promise<void> => {
        for (let place = next++; place < texts.length; place = next++) {
          const { line, input, instruction } = texts[place] as NumberedText;
          const outcome = await engine.score({ ...job, input, instruction, choices, vector: true }, terms());
          if (outcome.kind === 'scored') scored[place] = outcome;
          else if (outcome.kind === 'choice_too_long')
            throw new Error(`a choice has more tokens than the model takes: ${JSON.stringify(outcome.choice)}`);
          else {
            const tokens = `${outcome.atLeast ? 'more than ' : ''}${outcome.tokens}`;
            problems.push({ line, problem: `has ${tokens} tokens, the model takes at most ${outcome.limit}` });
          }
        }
      };
      await Promise.all(Array.from({ length: 2 * engines }, lane));
      return { scored, problems };
    };
    return await work({
      name: `${revision.id}@${revision.revision}`,
      revision,
      problemsOf: async ({ problems, texts }) => problemLines([...problems, ...(await scoreAll(texts, [])).problems]),
      async scoreAll(texts, choices) {
        // A server that decides may count otherwise than the package's own tokenizer, so these may be new.
        const { scored, problems } = await scoreAll(texts, choices);
        if (problems.length > 0) throw new Error(problemLines(problems).join('\n'));
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

async function readyRevision(engine: Engine, model: string): Promise<ModelRevision> {
  for (const end = performance.now() + LOAD_MS; ; ) {
    const revision = engine.models().find(({ id, isDefault }) => id === model && isDefault);
    if (revision === undefined || revision.status === 'disabled') throw new Error(`model '${model}' is not served`);
    if (revision.status === 'ready') return revision;
    if (performance.now() > end) {
      throw new Error(`model '${model}' cannot be loaded; 'umpire models check ${model}' says why`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
