/** The temperature of a package that is being made, by labelled examples. */
import { judge, MIN_EXAMPLES } from '../domain/learning/learn.ts';
import { type AnswerQuality, qualityOf } from '../domain/learning/quality.ts';
import { fitTemperature } from '../domain/learning/temperature.ts';
import { applyTemperature } from '../engine/tempered.ts';
import type { Terminal } from './command.ts';
import { type Example, labelsIn, problemLines, readExamples } from './examples.ts';
import { withOwnEngine } from './own-engine.ts';
import { figureLines } from './quality-lines.ts';

/** Examples, and the choices that they are decided among: their labels. */
export interface LabelledExamples {
  readonly examples: readonly Example[];
  readonly choices: readonly string[];
}

/** What fitting came to. */
export interface FittedTemperature {
  readonly temperature: number;
  /** Of the answers at that temperature. */
  readonly quality: AnswerQuality;
}

const DIGITS = 4;

/** Reads a file as `learn` does. Notes go to standard error. @throws Error with every problem of it. */
export function labelledExamples(text: string, instruction: string | undefined, terminal: Terminal): LabelledExamples {
  const choices = labelsIn(text);
  const { examples, problems, notes } = readExamples(text, choices, instruction);
  for (const note of notes) terminal.err(note);
  if (problems.length > 0) throw new Error(problemLines(problems).join('\n'));
  if (choices.length < 2) throw new Error('examples need two labels or more: they are the choices');
  if (examples.length < MIN_EXAMPLES) {
    throw new Error(`${examples.length} examples are too few: ${MIN_EXAMPLES} are the least, a hundred are better`);
  }
  return { examples, choices };
}

/**
 * Decides examples with a model whose temperature is 1, and finds the one that they ask for. `usual`: what it is drawn
 * to, as `fitTemperature` says.
 */
export async function fittedTemperature(
  terminal: Terminal,
  { examples, choices }: LabelledExamples,
  { modelsDir, model, usual }: { readonly modelsDir: string; readonly model: string; readonly usual: number },
): Promise<FittedTemperature> {
  const scored = await withOwnEngine(terminal, model, (engine) => engine.scoreAll(examples, choices), modelsDir);
  const labelled = scored.map(({ probabilities }, i) => ({
    probabilities,
    label: choices.indexOf((examples[i] as Example).label),
  }));
  const temperature = Number(fitTemperature(labelled, usual).toPrecision(DIGITS));
  const answers = labelled.map(({ probabilities, label }) => {
    const tempered = applyTemperature(probabilities, temperature);
    return judge(choices, label, (k) => tempered[k] as number);
  });
  return { temperature, quality: qualityOf(answers) };
}

/** The temperature and what it does, as lines for a terminal. */
export function fittedLines({ temperature, quality }: FittedTemperature): readonly string[] {
  return [
    `temperature ${temperature}, fitted on ${quality.answers} examples:`,
    ...figureLines(quality).map((line) => `  ${line}`),
  ];
}
