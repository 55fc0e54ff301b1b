/** Fits the temperature of a package that is being made to labelled examples. */
import { judge, MIN_EXAMPLES } from '../domain/learning/learn.ts';
import { type AnswerQuality, qualityOf } from '../domain/learning/quality.ts';
import { fitTemperature } from '../domain/learning/temperature.ts';
import { applyTemperature } from '../engine/tempered.ts';
import type { Terminal } from './command.ts';
import { type Example, labelsIn, problemLines, readExamples } from './examples.ts';
import { withOwnEngine } from './own-engine.ts';
import { figureLines } from './quality-lines.ts';

/** Examples and their choices, which are the labels that occur among them. */
export interface LabelledExamples {
  readonly examples: readonly Example[];
  readonly choices: readonly string[];
}

/** The result of fitting a temperature. */
export interface FittedTemperature {
  readonly temperature: number;
  /** The quality of the answers at that temperature. */
  readonly quality: AnswerQuality;
}

/** Significant digits to which a fitted temperature is rounded, in the package and on the terminal. */
const DIGITS = 4;

/** Reads a file as `umpire learn` does. Notes go to standard error. @throws Error with every problem of the file. */
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
 * Decides examples with a model whose temperature is 1, and fits the temperature to the outcome. `usual`: the
 * temperature towards which `fitTemperature` pulls.
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
