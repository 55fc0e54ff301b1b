/**
 * `umpire evaluate …`: measures how good the answers of a model or a catalog are on labelled examples, and from which
 * confidence on they can be acted on. A package that is being made gets its temperature in the same way.
 */
import { writeFile } from 'node:fs/promises';
import { Learned } from '../../domain/learned.ts';
import { applyTemperature } from '../../engine/tempered.ts';
import { fitTemperature } from '../../learning/ladder.ts';
import { judge, MIN_EXAMPLES } from '../../learning/learn.ts';
import { type AnswerQuality, type JudgedAnswer, qualityOf } from '../../learning/quality.ts';
import type { CatalogRecord } from '../../stores/catalog-store.ts';
import { ownerFrom, readArguments } from '../arguments.ts';
import { type Command, flag, Interrupted, OWNER_OPTION, option, type Terminal, UsageError } from '../command.ts';
import { choicesIn, keyFrom, SERVICE_OPTIONS, serviceFrom } from '../decide/decide.ts';
import { type Asked, DecidingClient, nameOf } from '../decide/deciding-client.ts';
import { readTextFile } from '../decide/lines.ts';
import { interruptible, outcomesOf } from '../decide/pace.ts';
import { EXAMPLE_OPTIONS, readingFrom } from '../decide/records.ts';
import { patience, STORE_ENVIRONMENT, withStores } from '../with-stores.ts';
import { costFigures, costsIn } from './costs-file.ts';
import { type Example, type ExampleFile, type LineProblem, readExamples, refuse, withoutKnown } from './examples.ts';
import { existing, scoredExamples } from './learn.ts';
import { type OwnEngine, withOwnEngine } from './own-engine.ts';
import { choiceLines, figureLines, reportPage, short, thresholdLines } from './report-page.ts';

const OPTIONS = {
  catalog: option('ID', 'a stored catalog, with what was added to it'),
  owner: { ...OWNER_OPTION, meaning: 'who owns the catalog' },
  model: option('MODEL', 'a model, without a catalog'),
  choices: option('FILE', 'its choices: a JSON array, or one a line'),
  ...EXAMPLE_OPTIONS,
  costs: option('FILE', 'JSON with what mistakes and people cost; finds what costs least'),
  ...SERVICE_OPTIONS,
  url: option('URL', 'a running service that decides, in place of the folder of models'),
  json: flag('the figures as one line of JSON'),
  report: option('FILE.html', 'writes a page for people who decide'),
} as const;

/** The command `umpire evaluate`. */
export const EVALUATE_COMMAND: Command = {
  name: 'evaluate',
  usage:
    '(--owner NAME --catalog ID | --url URL [--key KEY | --key-file FILE] --catalog ID | [--url URL] --model M --choices FILE) [OPTION]… EXAMPLES',
  summary: 'measures answers on labelled examples',
  notes: [
    'Use examples that the catalog did not learn from: it knows those. Where they are kept beside it, they are left out, and so is what is nearly the same. With --url nobody sees what is kept: leave them out yourself.',
    'The file of --costs is {"person": 2, "wrong": 10, "mistakes": [{"label": "none of these", "cost": 50}]}: what it costs that a person decides, that an answer is wrong, and mistakes with a cost of their own, by label, choice or both. What --json writes then has thresholds for decide --sure.',
  ],
  positionals: [['EXAMPLES', 'JSON lines {"input": …, "instruction": …, "label": …}, or CSV with such a header']],
  options: OPTIONS,
  environment: ['UMPIRE_KEY', ...STORE_ENVIRONMENT, 'UMPIRE_MODELS_DIR', 'UMPIRE_INFERENCE_SERVERS'],
  async run(args, terminal) {
    const { values, positionals } = readArguments(args, OPTIONS, ['EXAMPLES']);
    const { catalog, model, choices, url } = values;
    const isOwned = (values.owner === undefined) === (url !== undefined);
    const byCatalog = catalog !== undefined && isOwned && model === undefined && choices === undefined;
    const byModel = model !== undefined && choices !== undefined && catalog === undefined && values.owner === undefined;
    if (!byCatalog && !byModel)
      throw new UsageError('--catalog with --owner or --url, or --model and --choices are needed');
    const client =
      url === undefined ? undefined : new DecidingClient(serviceFrom(url, terminal), await keyFrom(values, terminal));
    const [path = ''] = positionals;
    const text = await readTextFile(path);
    const { record, learnedFrom } = byModel
      ? { record: { id: '', model, choices: await choicesIn(choices, terminal) }, learnedFrom: '' }
      : client === undefined
        ? await stored(terminal, ownerFrom(values.owner), catalog as string)
        : { record: { id: catalog as string, ...(await client.catalog(catalog as string)) }, learnedFrom: '' };
    const costs = values.costs === undefined ? undefined : await costsIn(values.costs, record.choices);
    const known = readExamples(learnedFrom, record.choices).examples;
    const file = withoutKnown(readExamples(text, record.choices, readingFrom(values)), known);
    const { examples } = file;
    for (const note of file.notes) terminal.err(note);
    if (examples.length + file.problems.length === 0) throw new Error('there are no examples');
    const asked = { model: record.model, ...(byModel ? { choices: record.choices } : { catalog: record.id }) };
    const { name, answers } =
      client === undefined
        ? await decideAll(terminal, record, file)
        : await answersThrough(client, asked, file, terminal);
    if (learnedFrom === '' && name.includes(', learned '))
      terminal.err('the catalog keeps no examples: if it learned from these, it seems far better here than it is');
    const quality = qualityOf(answers);
    const cost = costFigures(answers, record.choices.toSorted(), costs);
    const report = {
      catalog,
      model: name,
      file: path,
      date: new Date(),
      quality,
      answers,
      examples,
      cheapest: cost.found,
    };
    if (values.report !== undefined) await writeFile(values.report, reportPage(report));
    if (values.json === true) terminal.out(JSON.stringify({ model: name, ...plain(quality, examples), ...cost.plain }));
    else for (const line of [...lines(name, quality, examples), ...cost.lines]) terminal.out(line);
  },
};

/** What decides: a model and its choices, and what was added to these. */
type Decider = Pick<CatalogRecord, 'id' | 'model' | 'choices' | 'additions'>;

/** A catalog, and the examples that are kept beside it. */
function stored(terminal: Terminal, owner: string, id: string) {
  return withStores(terminal, async ({ catalogs }) => {
    const { record } = await existing(catalogs, owner, id);
    return { record, learnedFrom: await catalogs.examples(owner, id, patience()) };
  });
}

async function decideAll(terminal: Terminal, record: Decider, file: ExampleFile) {
  const sorted = record.choices.toSorted();
  const { learned } = record.additions ?? {};
  return withOwnEngine(terminal, record.model, async (engine) => {
    const state = learned?.model === engine.name ? new Learned(learned) : undefined;
    if (learned !== undefined && state === undefined) {
      terminal.err(`what the catalog learned is for ${learned.model}; ${engine.name} is measured zero-shot`);
    }
    const problems = await engine.problemsOf(file);
    if (problems.length > 0) throw new Error(problems.join('\n'));
    const scored = await scoredExamples(engine, record, file.examples);
    const answers = scored.map(({ probabilities, vector, label }): JudgedAnswer => {
      const decided = state?.decide(probabilities, vector) ?? probabilities;
      return judge(sorted, label, (k) => decided[k] as number);
    });
    return { name: state === undefined ? engine.name : `${engine.name}, learned ${state.digest}`, answers };
  });
}

/** Requests in progress at one time, and milliseconds without an answer after which the command gives up. */
const [AT_ONCE, PATIENCE_MS] = [64, 120_000];

/**
 * The answers to examples, in their order. `asked`: choices or a catalog. Throws Error with a line for each example
 * that was refused, or if the model changed meanwhile.
 */
async function answersThrough(
  client: DecidingClient,
  asked: Omit<Asked, 'input' | 'instruction'>,
  { examples, problems }: Pick<ExampleFile, 'examples' | 'problems'>,
  terminal: Terminal,
): Promise<{ readonly name: string; readonly answers: readonly JudgedAnswer[] }> {
  refuse(problems);
  const stop = interruptible(terminal);
  const answers: JudgedAnswer[] = [];
  const refused: LineProblem[] = [];
  const names = new Set<string>();
  const outcomes = outcomesOf(examples.values(), {
    client,
    question: ({ input, instruction }) => ({ ...asked, input, instruction }),
    weigh: () => 0,
    atOnce: AT_ONCE,
    patience: PATIENCE_MS,
    signal: stop.signal,
  });
  try {
    for await (const { thing, outcome } of outcomes) {
      const { line, label } = thing;
      if (outcome.kind === 'refused') {
        refused.push({ line, problem: `${outcome.refusal.code}: ${outcome.refusal.message}` });
        continue;
      }
      const { choice, confidence, probabilities } = outcome.answer;
      names.add(nameOf(outcome.answer));
      answers.push({ label, choice, confidence, ofLabel: probabilities[label] ?? 0 });
    }
  } finally {
    stop.abort(new Interrupted('over'));
  }
  refuse(refused);
  if (names.size > 1) throw new Error(`what decides changed while this ran (${[...names].join('; ')}): run it again`);
  return { name: [...names].join(), answers };
}

function lines(name: string, quality: AnswerQuality, examples: readonly Example[]): readonly string[] {
  return [
    `${quality.answers} examples with ${name}`,
    ...figureLines(quality),
    '',
    ...thresholdLines(quality),
    '',
    ...choiceLines(quality),
    ...(quality.confusions.length === 0 ? [] : ['', 'taken for each other most often:']),
    ...quality.confusions.flatMap(({ label, choice, count, places }) => [
      `  ${JSON.stringify(label)} taken for ${JSON.stringify(choice)}: ${count}`,
      ...places.map(
        (place) => `    line ${examples[place]?.line}: ${JSON.stringify(short(examples[place]?.input ?? ''))}`,
      ),
    ]),
  ];
}

const NO_THRESHOLD = { threshold: null, coverage: null, accuracy: null };

/** The figures as `--json` prints them. */
function plain(quality: AnswerQuality, examples: readonly Example[]): object {
  const { accuracy, macroF1, logLoss, ece, thresholds, confusions, choices } = quality;
  return {
    examples: quality.answers,
    accuracy,
    macro_f1: macroF1,
    log_loss: logLoss,
    ece,
    thresholds: thresholds.map(({ target, found }) => ({ target, ...(found ?? NO_THRESHOLD) })),
    confusions: confusions.map(({ places, ...pair }) => ({
      ...pair,
      lines: places.map((place) => examples[place]?.line),
    })),
    choices: choices.map(({ choice, texts, missed = null, wrongly = null }) => ({ choice, texts, missed, wrongly })),
  };
}

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
  const { choices, examples, problems, notes } = readExamples(text, undefined, readingFrom({ instruction }));
  for (const note of notes) terminal.err(note);
  refuse(problems);
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
  labelled: LabelledExamples,
  { modelsDir, model, usual }: { readonly modelsDir: string; readonly model: string; readonly usual: number },
): Promise<FittedTemperature> {
  const { examples, choices } = labelled;
  const score = (engine: OwnEngine) => scoredExamples(engine, labelled, examples);
  const scored = await withOwnEngine(terminal, model, score, modelsDir);
  const temperature = Number(fitTemperature(scored, usual).toPrecision(DIGITS));
  const answers = scored.map(({ probabilities, label }) => {
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
