/**
 * `umpire models add --cascade`: makes a package that asks models in order. Thresholds, and weights where they help,
 * are fitted to labelled examples, and what the cascade is worth is measured on examples that were held out.
 */
import { listPackages, stepsListed } from '../../engine/package-tools/check.ts';
import { newFolder, type PackagePlace, placeMade, writeManifest } from '../../engine/package-tools/place-package.ts';
import { MOST_STEPS } from '../../engine/packages/cascade.ts';
import {
  type CascadeExample,
  type CascadeFigures,
  type FittedCascade,
  fitCascade,
  LEAST_EXAMPLES,
  type StepSaid,
} from '../../learning/cascade.ts';
import type { Spread } from '../../learning/costs.ts';
import type { Share } from '../../learning/quality.ts';
import { printTable } from '../arguments.ts';
import { option, type Terminal, UsageError } from '../command.ts';
import { readTextFile } from '../decide/lines.ts';
import { readingFrom } from '../decide/records.ts';
import { problemLines, readExamples } from '../learn/examples.ts';
import { withOwnEngine } from '../learn/own-engine.ts';
import { percent } from '../learn/report-page.ts';
import { numberFrom } from './packing.ts';

/** The options of a cascade alone. */
export const CASCADE_OPTIONS = {
  cascade: option('MODEL,MODEL…', 'makes a cascade of these models, in this order; with --examples'),
  accuracy: option('SHARE', 'of a cascade: the share of right answers, as cheaply as possible'),
  'share-of-last': option('SHARE', 'of a cascade: how many decisions may come to its last step'),
  'if-away': option('answer|refuse', 'of a cascade: whether the others decide while a step is away', 'refuse'),
} as const;

/** The options that a cascade takes beside its own. */
const ALSO = ['examples', 'instruction', 'owned-by'] as const;

type Values = {
  readonly [name in keyof typeof CASCADE_OPTIONS | (typeof ALSO)[number]]?: string | undefined;
} & { readonly default?: boolean | undefined };

/** Fits a cascade and places its package. Throws UsageError, or Error with every problem; nothing is left then. */
export async function addCascade(place: PackagePlace, values: Values, terminal: Terminal): Promise<void> {
  const { text, target, ifAway } = await argumentsFrom(values);
  await newFolder(place);
  const models = await modelsOf(place.modelsDir, (values.cascade ?? '').split(','));
  const fitted = fitCascade(await saidOf(models, text, values.instruction, terminal), target);
  const { isMet, isJoined } = fitted;
  const expected = isJoined ? fitted.joined : fitted.apart;
  const { accuracy } = target;
  const rows = rowsOf(fitted, models);
  terminal.out('on examples held out, with 95 % intervals:');
  printTable(terminal, ['', 'RIGHT', 'ECE', 'MS', 'TOKENS', 'BEYOND LOTS', ...models], rows);
  terminal.out('beyond lots: how much more often it is right than if lots drew one of two steps, in the same time');
  if (!isMet) throw new Error(`no thresholds reach ${percent(accuracy ?? 1)}; nothing was added`);
  const pays = expected.gain.low > 0;
  const verdict = pays ? 'it pays' : 'it does not pay: it is right no more often than lots would be, but by chance';
  if (!pays && accuracy === undefined && target.shareOfLast === undefined)
    throw new Error(`${verdict}; nothing was added. --accuracy or --share-of-last adds it nevertheless`);
  terminal.out(verdict);
  if (accuracy !== undefined && expected.quality.accuracy.share < accuracy)
    terminal.out(`it is right less often than ${percent(accuracy)} on examples held out: more examples choose better`);
  const steps = packageStepsOf(fitted, models);
  const { folder } = await placeMade(place, (_, staged) =>
    writeManifest(staged, [], {
      ...{ id: place.id, revision: place.revision, family: 'cascade', ownedBy: values['owned-by'] ?? 'local' },
      isDefault: values.default === true,
      options: { steps, if_away: ifAway, join: isJoined },
    }),
  );
  terminal.out(`${place.id}@${place.revision} is in ${folder}: ${JSON.stringify(steps)}`);
}

/** A fitted cascade as a package says it. */
export function packageStepsOf({ steps }: FittedCascade, models: readonly string[]): readonly object[] {
  return steps.map(({ sure, reached, weights }, i) => ({
    model: models[i],
    ...(i < steps.length - 1 && { sure }),
    ...(i > 0 && { reached }),
    ...(weights && { weights }),
  }));
}

/** The values, read. Throws UsageError for the first that is wrong. */
async function argumentsFrom(values: Values) {
  const known: readonly string[] = [...Object.keys(CASCADE_OPTIONS), ...ALSO, 'default'];
  const other = Object.keys(values).find((name) => !known.includes(name));
  if (other !== undefined) throw new UsageError(`--${other} is not for a cascade`);
  const share = (name: 'accuracy' | 'share-of-last'): number | undefined => {
    const value = numberFrom(`--${name}`, values[name]);
    if (value !== undefined && !(value >= 0 && value <= 1)) throw new UsageError(`--${name}: must be from 0 to 1`);
    return value;
  };
  const target = { accuracy: share('accuracy'), shareOfLast: share('share-of-last') };
  if (target.accuracy !== undefined && target.shareOfLast !== undefined)
    throw new UsageError('--accuracy or --share-of-last, not both');
  const ifAway = values['if-away'] ?? 'refuse';
  if (ifAway !== 'answer' && ifAway !== 'refuse') throw new UsageError('--if-away must be answer or refuse');
  if (values.examples === undefined) throw new UsageError('--examples FILE is needed');
  return { text: await readTextFile(values.examples), target, ifAway };
}

/** The revisions that the names mean. Throws Error with everything that is wrong with them. */
async function modelsOf(modelsDir: string, names: readonly string[]): Promise<readonly string[]> {
  if (names.length < 2 || names.length > MOST_STEPS)
    throw new UsageError(`--cascade: ${names.length} models; 2 to ${MOST_STEPS} make a cascade`);
  const { found, problems } = stepsListed(names, await listPackages(modelsDir));
  if (problems.length > 0) throw new Error(problems.map((each) => each.replace('options.steps', 'step')).join('\n'));
  return found.map(({ id, revision }) => `${id}@${revision}`);
}

/** The examples of a file with what each model says of them. Throws Error with every problem of the file. */
async function saidOf(
  models: readonly string[],
  text: string,
  instruction: string | undefined,
  terminal: Terminal,
): Promise<readonly CascadeExample[]> {
  const reading = { ...readingFrom({ instruction }), ownChoices: true };
  const { choices: labels, examples, problems, notes } = readExamples(text, undefined, reading);
  for (const note of notes) terminal.err(note);
  const few = `${examples.length} examples are too few: ${LEAST_EXAMPLES} are the least, some hundred are better`;
  const wrong = [...problemLines(problems), ...(examples.length < LEAST_EXAMPLES ? [few] : [])];
  if (labels.length === 1) wrong.push('examples without choices of their own need two labels or more');
  if (wrong.length > 0) throw new Error(wrong.join('\n'));
  const bySteps: (readonly StepSaid[])[] = [];
  for (const model of models) {
    terminal.out(`deciding ${examples.length} examples with ${model}`);
    const scored = await withOwnEngine(terminal, model, (engine) => engine.scoreAll(examples, { choices: labels }));
    bySteps.push(
      scored.map(({ probabilities, inputTokens: tokens, timings: { tokenize, infer } }) => {
        return { probabilities, tokens, milliseconds: tokenize + infer };
      }),
    );
  }
  return examples.map(({ label, choices = labels }, i) => {
    return { choices, label: choices.indexOf(label), said: bySteps.map((each) => each[i] as StepSaid) };
  });
}

/** A row for each step alone, for both ways to make an answer of what the steps say, and for each part of the curve. */
function rowsOf({ alone, apart, joined, isJoined, curve }: FittedCascade, models: readonly string[]) {
  const share = (figure: Share): string => within({ ...figure, value: figure.share }, percent);
  const row = (name: string, { quality, shares, milliseconds, tokens, gain }: CascadeFigures): readonly string[] => [
    name,
    share(quality.accuracy),
    quality.ece.toFixed(3),
    within(milliseconds, oneDigit),
    within(tokens, oneDigit),
    within(gain, percent),
    ...shares.map(share),
  ];
  const taken = (isTaken: boolean): string => (isTaken ? ' (taken)' : '');
  return [
    ...alone.map((figures, i) => row(`${models[i]} alone`, figures)),
    row(`not joined${taken(!isJoined)}`, apart),
    row(`joined${taken(isJoined)}`, joined),
    ...curve.map(({ shareOfLast, figures }) => row(`last step at most ${percent(shareOfLast)}`, figures)),
  ];
}

/** A figure with its interval. */
function within({ value, low, high }: Spread, shown: (value: number) => string): string {
  return `${shown(value)} (${shown(low).replace(' %', '')} to ${shown(high)})`;
}

function oneDigit(value: number): string {
  return value.toFixed(1);
}
