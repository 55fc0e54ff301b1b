/**
 * `npm run bench -- cascade [--sets ordinary,everyday,trec6] [--data FOLDER] [--rows 400] [--llm PACKAGE]`: cascades
 * of umpire-mini, umpire-base and simulated language models (simulated-llm.ts), or the model whose package is named, on
 * the ordinary test, the everyday test and sets of a folder. Of each set every other row is fitted to, as `umpire
 * models add --cascade` does, and the others are decided by the cascade, beside each model alone. `expected accuracy`
 * and `beyond lots` are the fit's 95 % intervals; `within` says whether accuracy and the share of the last step lie
 * within theirs. Times are those of the models, without queues.
 */
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { packageStepsOf } from '../../src/cli/models/cascading.ts';
import { createEngine } from '../../src/engine/create-engine.ts';
import type { Engine, ScoreOutcome } from '../../src/engine/engine.ts';
import { USUAL_CANARY } from '../../src/engine/package-tools/pack.ts';
import { type CascadeExample, type CascadeTarget, fitCascade } from '../../src/learning/cascade.ts';
import { judge } from '../../src/learning/learn.ts';
import { meanOf } from '../../src/learning/matrix.ts';
import { qualityOf } from '../../src/learning/quality.ts';
import { SILENT_LOG } from '../../src/stores/stores.ts';
import { type DataSet, type Row, readDataSets, readFolders } from '../eval/data-sets.ts';
import { printTable } from '../report/table.ts';
import { remotePackage, writePackage } from './packages.ts';
import { startSimulatedLlm } from './simulated-llm.ts';

const SHIPPED = fileURLToPath(new URL('../../models', import.meta.url));
const EVAL = fileURLToPath(new URL('../eval', import.meta.url));
const LOCAL = ['umpire-mini', 'umpire-base'];
const SIMULATED = ['right-80', 'right-90'];
/** The tests of the repository, which are taken whole. */
const OWN = ['ordinary', 'everyday'];
const TARGETS: readonly (readonly [name: string, target: CascadeTarget])[] = [
  ['within a point of the best', {}],
  ['last step at most 20 %', { shareOfLast: 0.2 }],
];
/** Milliseconds for a decision, and decisions at a time. */
const [PATIENCE, AT_ONCE] = [120_000, 8];

type Scored = Extract<ScoreOutcome, { readonly kind: 'scored' }>;

/** Runs the benchmark and prints a table for each set. */
export async function run(numbers: Record<string, number>, words: Record<string, string>): Promise<void> {
  const rows = numbers.rows ?? 400;
  const whole = (name: string): DataSet => {
    const sets = readDataSets(join(EVAL, name));
    return { ...(sets[0] as DataSet), name, rows: sets.flatMap((set) => set.rows) };
  };
  const names = words.sets?.split(',') ?? OWN;
  const own = OWN.filter((name) => names.includes(name)).map(whole);
  const others = names.filter((name) => !OWN.includes(name));
  const sets = [...own, ...(others.length === 0 ? [] : readFolders([words.data ?? ''], { sets: others, rows }))];
  const labels = new Map(sets.flatMap((set) => set.rows.map((row) => [keyOf(row.instruction, row.input), row.label])));
  labels.set(keyOf(USUAL_CANARY.instruction, USUAL_CANARY.input), USUAL_CANARY.choice);
  const llm = await startSimulatedLlm((instruction, input) => labels.get(keyOf(instruction, input)));
  const modelsDir = mkdtempSync(join(tmpdir(), 'umpire-bench-models-'));
  for (const id of LOCAL) symlinkSync(join(SHIPPED, id), join(modelsDir, id));
  if (words.llm !== undefined) symlinkSync(resolve(words.llm), join(modelsDir, basename(words.llm)));
  const large = words.llm === undefined ? SIMULATED : [basename(words.llm)];
  for (const id of words.llm === undefined ? SIMULATED : [])
    await writePackage(modelsDir, id, remotePackage(llm.port, id));
  const logger = { ...SILENT_LOG, debug: () => {} };
  const engine = await createEngine({ modelsDir, engines: numbers.engines ?? 2, logger });
  try {
    for (const set of sets) await measure(engine, modelsDir, large, set);
  } finally {
    await engine.close();
    await llm.stop();
    rmSync(modelsDir, { recursive: true, force: true });
  }
}

/** Measures each model alone and every cascade on a set. */
async function measure(
  engine: Engine,
  modelsDir: string,
  large: readonly string[],
  { name, rows }: DataSet,
): Promise<void> {
  const [learned, test] = [rows.filter((_, i) => i % 2 === 0), rows.filter((_, i) => i % 2 === 1)];
  const alone = [...LOCAL, ...large];
  const cascades = [LOCAL, ...large.map((id) => ['umpire-mini', id]), [...LOCAL, large.at(-1) as string]];
  const said = await decideAll(engine, alone, learned);
  const contenders = await Promise.all(
    cascades.flatMap((models) =>
      TARGETS.map(async ([aim, target], place) => {
        const examples = learned.map((row, i): CascadeExample => {
          const choices = row.choices.toSorted();
          return { choices, label: choices.indexOf(row.label), said: models.map((each) => stepOf(said, each, i)) };
        });
        const fitted = fitCascade(examples, target);
        const id = `${name.replaceAll('_', '-')}-${models.join('-')}-${place}`;
        const options = { steps: packageStepsOf(fitted, models), join: fitted.isJoined };
        await writePackage(modelsDir, id, { family: 'cascade', options });
        const title = `${models.join(', ')}: ${aim}${fitted.isJoined ? ', joined' : ''}`;
        return { id, title, last: models.at(-1), expected: fitted.isJoined ? fitted.joined : fitted.apart };
      }),
    ),
  );
  const found = await decideAll(engine, [...alone, ...contenders.map(({ id }) => id)], test);
  const figures = (id: string): readonly string[] => {
    const scored = found.get(id) ?? [];
    const { accuracy, ece } = qualityOf(scored.map(({ probabilities }, i) => judged(test[i] as Row, probabilities)));
    return [accuracy.share.toFixed(3), ece.toFixed(3), meanOf(scored.map(timeOf)).toFixed(0)];
  };
  const table = alone.map((model) => [`${model} alone`, ...figures(model), '', '', '', '']);
  for (const { id, title, last, expected } of contenders) {
    const { quality, shares, gain } = expected;
    const [accuracy = '', ...others] = figures(id);
    const asked = meanOf((found.get(id) ?? []).map(({ step }) => Number(step?.model.startsWith(`${last}@`)))).toFixed(
      2,
    );
    const within = (value: string, { low, high }: { readonly low: number; readonly high: number }): string =>
      Number(value) >= low && Number(value) <= high ? 'yes' : 'no';
    table.push([
      ...[title, accuracy, ...others, asked],
      `${quality.accuracy.low.toFixed(3)}–${quality.accuracy.high.toFixed(3)}`,
      `${gain.low.toFixed(3)}–${gain.high.toFixed(3)}`,
      `${within(accuracy, quality.accuracy)}, ${within(asked, shares.at(-1) as (typeof shares)[number])}`,
    ]);
  }
  console.log(`\n${name}: ${test.length} rows that nothing was fitted to\n`);
  printTable(['', 'accuracy', 'ECE', 'ms', 'last step', 'expected accuracy', 'beyond lots', 'within'], table);
}

/** Decides all rows by all models, whose decisions alternate, so that what else the machine does slows all alike. */
async function decideAll(
  engine: Engine,
  models: readonly string[],
  rows: readonly Row[],
): Promise<ReadonlyMap<string, readonly Scored[]>> {
  const revisionOf = (model: string): string | undefined =>
    engine.models().find(({ id, isDefault, status }) => id === model && isDefault && status === 'ready')?.revision;
  while (models.some((model) => revisionOf(model) === undefined)) await sleep(50);
  const found = new Map(models.map((model) => [model, new Array<Scored>(rows.length)]));
  const jobs = rows.flatMap((row, place) => models.map((model) => ({ row, place, model })));
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let job = jobs[next++]; job !== undefined; job = jobs[next++]) {
      const { row, place, model } = job;
      const { input, instruction } = row;
      const terms = {
        ...{ signal: AbortSignal.timeout(PATIENCE), deadline: performance.now() + PATIENCE },
        ...{ tenant: 'bench', keyed: true },
      };
      const question = { input, instruction, choices: row.choices.toSorted() };
      const outcome = await engine.score({ model, revision: revisionOf(model) ?? '', ...question }, terms);
      if (outcome.kind !== 'scored') throw new Error(`row ${place}: ${outcome.kind}`);
      (found.get(model) as Scored[])[place] = outcome;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return found;
}

function stepOf(said: ReadonlyMap<string, readonly Scored[]>, model: string, place: number) {
  const scored = said.get(model)?.[place] as Scored;
  return { probabilities: scored.probabilities, milliseconds: timeOf(scored), tokens: scored.inputTokens };
}

const timeOf = ({ timings }: Scored): number => timings.tokenize + timings.infer;

function judged({ choices, label }: Row, probabilities: Float64Array) {
  const sorted = choices.toSorted();
  return judge(sorted, sorted.indexOf(label), (k) => probabilities[k] as number);
}

const keyOf = (instruction: string, input: string): string => JSON.stringify([instruction, input]);
