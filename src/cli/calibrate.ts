/** `umpire calibrate …`: fits a model's probabilities to an owner's labelled examples of one catalog, or takes that back. */
import { readFile } from 'node:fs/promises';
import { type CalibrationFit, fitCalibration, MIN_EXAMPLES, type ScoredExample } from '../domain/calibration.ts';
import { createEngine } from '../engine/create-engine.ts';
import type { Engine, ModelRevision } from '../engine/engine.ts';
import type { CatalogStore, StampedCatalog } from '../stores/catalog-store.ts';
import { silentLog } from '../stores/log.ts';
import { ownerFrom, readArguments } from './arguments.ts';
import { type Command, OWNER_OPTION, type Terminal, UsageError } from './command.ts';
import { inferenceServersOf, modelsFolder } from './models.ts';
import { patience, STORE_ENVIRONMENT, withStores } from './with-stores.ts';

/** One line of the file. */
interface Example {
  readonly line: number;
  readonly input: string;
  readonly instruction: string;
  readonly label: string;
}

const LOAD_MS = 120_000;
const DECISION_MS = 60_000;

const OPTIONS = {
  catalog: { type: 'string', value: 'ID', meaning: 'the catalog; needed' },
  owner: OWNER_OPTION,
  remove: { type: 'boolean', meaning: 'takes the calibration back' },
} as const;

/** The command. */
export const calibrateCommand: Command = {
  name: 'calibrate',
  usage: '--catalog ID --owner NAME (LABELS.jsonl | --remove)',
  summary: "fits a model's probabilities for a catalog to labelled examples",
  notes: [
    'Answers stay the same; how sure they are is fitted. Nothing is changed unless it helps on examples that were held out.',
  ],
  positionals: [['LABELS.jsonl', 'a line each: {"input": …, "instruction": …, "label": …}']],
  options: OPTIONS,
  environment: [...STORE_ENVIRONMENT, 'UMPIRE_MODELS_DIR', 'UMPIRE_INFERENCE_SERVERS'],
  failure: 'it does not help',
  async run(args, terminal) {
    const { values, positionals } = readArguments(args, OPTIONS, [0, 1]);
    const owner = ownerFrom(values.owner);
    const { catalog: id } = values;
    if (id === undefined) throw new UsageError('--catalog ID is needed');
    const [file] = positionals;
    if ((file === undefined) !== (values.remove === true)) throw new UsageError('either a file or --remove is needed');
    const text = file === undefined ? undefined : await readFile(file, 'utf8');
    await withStores(terminal, async ({ catalogs }) => {
      const found = await catalogs.read(owner, id, patience());
      if (found === undefined) throw new Error(`${owner} has no catalog '${id}'`);
      if (text === undefined) await remove(catalogs, owner, found, terminal);
      else await calibrate(catalogs, owner, found, readExamples(text, found.record.choices), terminal);
    });
  },
};

async function remove(catalogs: CatalogStore, owner: string, found: StampedCatalog, terminal: Terminal) {
  const { id, calibrations } = found.record;
  if (calibrations === undefined) throw new Error(`catalog '${id}' is not calibrated`);
  await store(catalogs, owner, found, {});
  terminal.out(`${id}: no longer calibrated for ${Object.keys(calibrations).join(', ')}`);
}

async function calibrate(
  catalogs: CatalogStore,
  owner: string,
  found: StampedCatalog,
  examples: readonly Example[],
  terminal: Terminal,
) {
  const { id, model, choices, calibrations = {} } = found.record;
  const logger = { ...silentLog, debug: () => {} };
  const engine = await createEngine({
    modelsDir: modelsFolder(terminal),
    engines: 1,
    inferenceServers: inferenceServersOf(terminal),
    logger,
  });
  try {
    const revision = await readyRevision(engine, model);
    const name = `${revision.id}@${revision.revision}`;
    terminal.out(`deciding ${examples.length} examples with ${name}`);
    const fit = fitCalibration(await score(engine, revision, choices.toSorted(), examples));
    for (const line of report(fit)) terminal.out(line);
    if (!fit.helps) {
      throw new Error(`a temperature does not help on held-out examples; nothing was changed: ${whyNot(fit)}`);
    }
    await store(catalogs, owner, found, { ...calibrations, [name]: fit.temperature });
    terminal.out(`${id}: calibrated for ${name}; every server decides by it within a second`);
  } finally {
    await engine.close();
  }
}

function report({ temperature, accuracy, before, after }: CalibrationFit): readonly string[] {
  const percent = (value: number): string => `${(100 * value).toFixed(1)} %`;
  return [
    `temperature ${temperature}`,
    `right answers: ${percent(accuracy)}`,
    `mean confidence: ${percent(before.confidence)}, calibrated ${percent(after.confidence)} (held out)`,
    `log loss: ${before.logLoss.toFixed(4)}, calibrated ${after.logLoss.toFixed(4)} (held out)`,
  ];
}

/** The figures that decided, since those above may look better. */
function whyNot({ gain, error }: CalibrationFit): string {
  if (gain <= 0) return 'their log loss does not fall';
  return `their log loss falls by ${gain.toFixed(4)}, which is within its standard error of ${error.toFixed(4)} and may be chance; more examples would tell`;
}

async function store(
  catalogs: CatalogStore,
  owner: string,
  { stamp, record }: StampedCatalog,
  calibrations: Readonly<Record<string, number>>,
) {
  const done = await catalogs.calibrate(owner, record.id, stamp, calibrations, patience());
  if (!done) throw new Error(`catalog '${record.id}' was changed meanwhile; nothing was changed, run it again`);
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

async function score(
  engine: Engine,
  { id, revision }: ModelRevision,
  choices: readonly string[],
  examples: readonly Example[],
): Promise<readonly ScoredExample[]> {
  const scored: ScoredExample[] = [];
  for (const { line, input, instruction, label } of examples) {
    const terms = {
      signal: AbortSignal.timeout(DECISION_MS),
      deadline: performance.now() + DECISION_MS,
      tenant: 'operator',
      keyed: true,
    };
    const outcome = await engine.score({ model: id, revision, input, instruction, choices }, terms);
    if (outcome.kind !== 'scored') throw new Error(`line ${line}: the model refuses it (${outcome.kind})`);
    scored.push({ probabilities: outcome.probabilities, label: choices.indexOf(label) });
  }
  return scored;
}

/** All lines are judged before the first is decided. */
function readExamples(text: string, choices: readonly string[]): readonly Example[] {
  const examples = text
    .split('\n')
    .map((content, place) => ({ content: content.trim(), line: place + 1 }))
    .filter(({ content }) => content !== '')
    .map(({ content, line }): Example => {
      const { input, instruction, label } = parse(content, line);
      const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
      if (!isText(input) || !isText(instruction) || !isText(label)) {
        throw new Error(`line ${line}: input, instruction and label must be texts`);
      }
      if (!choices.includes(label)) {
        throw new Error(`line ${line}: the label ${JSON.stringify(label)} is not one of the catalog's choices`);
      }
      return { line, input, instruction, label };
    });
  if (examples.length < MIN_EXAMPLES) {
    throw new Error(`${examples.length} examples are too few: ${MIN_EXAMPLES} are the least, some hundred are better`);
  }
  return examples;
}

function parse(content: string, line: number): Readonly<Record<string, unknown>> {
  try {
    const value = JSON.parse(content);
    if (typeof value === 'object' && value !== null) return value;
  } catch {}
  throw new Error(`line ${line}: is not a JSON object`);
}
