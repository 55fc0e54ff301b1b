/**
 * `npm run bench -- learn [--draws 5] [--most 16] [--sets trec6,sst2] [--rows 2000] [--out bench/learn/out] [--model
 * umpire-mini] [--data FOLDER]`: what catalogs learn from k examples of each choice, compared with zero-shot and with a
 * plain logistic regression on the same vectors, on the sets of `../shared/data/eval`. The service's own engine scores
 * each text once. Examples are drawn and learned from, and all other texts are decided by what was learned. Some of
 * these decisions are also made through a running service, and must have the same numbers. Every draw is a line of
 * `results.jsonl` in the folder of `--out`, from which an interrupted run continues.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createEngine } from '../../src/engine/create-engine.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { ScoredExample } from '../../src/learning/regression.ts';
import type { LearnedRecord } from '../../src/stores/catalog-additions.ts';
import { SILENT_LOG } from '../../src/stores/stores.ts';
import { readDataSets } from '../eval/data-sets.ts';
import { learningCost, MOST_COST } from './cost.ts';
import { measureDraw } from './draw.ts';
import { scoresOf } from './scores.ts';
import { checkThroughService } from './through-service.ts';

/** The accuracy that is required on a set, by the number of examples of each choice. */
const FLOORS: Readonly<Record<string, Readonly<Record<number, number>>>> = {
  trec6: { 8: 0.8, 16: 0.85 },
  ag_news: { 8: 0.75, 16: 0.78 },
  sms_spam: { 16: 0.92 },
  sst2: {},
  tweet_emotion: {},
  hatecheck: {},
  bitext_support: { 4: 0.92 },
  banking77: { 4: 0.73, 8: 0.8, 16: 0.88 },
  clinc150: { 4: 0.86, 8: 0.9 },
  metatool: { 8: 0.7 },
  newsgroups20: { 16: 0.7 },
};
/** Examples of each choice that are learned from. */
const SIZES = [1, 2, 4, 8, 16];
const DATA = fileURLToPath(new URL('../../../shared/data/eval', import.meta.url));

const OUT = fileURLToPath(new URL('./out', import.meta.url));
const MODELS = fileURLToPath(new URL('../../models', import.meta.url));
/** Decisions of a set that are made through the service as well. */
const CHECKED = 40;
/** The bound on the mean ECE of learned answers over all sets, from this number of examples of each choice on. */
const MOST_ECE = { from: 8, ece: 0.06 };
/** How much accuracy learning may lose against zero-shot. */
const SLACK = 0.01;
/** The set on which the cost of learning is measured. */
const COSTED = 'banking77';
/** Rows of that set that are learned from. */
const COSTED_ROWS = 1000;
/** Rows of that set that are decided, for the time of a decision. */
const TIMED = 50;
/** Milliseconds for one of these decisions. */
const PATIENCE_MS = 60_000;

/** The result of one draw. */
interface Draw {
  readonly model: string;
  readonly set: string;
  /** Rows of the set. */
  readonly rows: number;
  readonly k: number;
  readonly draw: number;
  readonly zeroShot: number;
  readonly learned: number;
  readonly regression: number;
  readonly ece: number;
  readonly rung: string;
}

/** Prints a row for each set and k. The process ends with status 1 if a floor is missed. */
export async function run(
  { draws = 5, most = 16, rows: mostRows }: Record<string, number>,
  { sets, out = OUT, model = 'umpire-mini', data = DATA }: Record<string, string> = {},
): Promise<void> {
  mkdirSync(out, { recursive: true });
  const file = join(out, 'results.jsonl');
  const done = linesOf(file).flatMap(drawOf);
  const checks = join(out, 'checked.jsonl');
  const engine = await createEngine({
    modelsDir: MODELS,
    models: [model],
    engines: 2,
    logger: { ...SILENT_LOG, debug: () => {} },
  });
  try {
    const revision = await readyRevision(engine, model);
    const name = `${model}@${revision}`;
    const missed: string[] = [];
    const all: Draw[] = [];
    console.log(
      '| set | k | zero-shot | learned | regression | ECE | floor | rungs |\n|---|---|---|---|---|---|---|---|',
    );
    for (const set of readDataSets(data, {
      sets: sets?.split(',') ?? Object.keys(FLOORS),
      ...(mostRows === undefined ? {} : { rows: mostRows }),
    })) {
      const choices = (set.rows[0]?.choices ?? []).toSorted();
      // The set is scored only if a draw is missing.
      let scoring: Promise<readonly ScoredExample[]> | undefined;
      const scores = () => {
        scoring ??= scoresOf(engine, { model, revision }, set, choices, out);
        return scoring;
      };
      let last: LearnedRecord | undefined;
      for (const k of SIZES.filter((size) => size <= most)) {
        const results: Draw[] = [];
        for (let draw = 0; draw < draws; draw++) {
          const facts = { model: name, set: set.name, rows: set.rows.length, k, draw };
          let result = done.find((each) =>
            Object.entries(facts).every(([key, value]) => each[key as keyof Draw] === value),
          );
          if (result === undefined) {
            const measured = measureDraw(await scores(), choices, name, k, draw);
            result = { ...facts, ...measured.figures };
            last = measured.record ?? last;
            appendFileSync(file, `${JSON.stringify(result)}\n`);
          }
          results.push(result);
        }
        all.push(...results);
        missed.push(...report(set.name, k, results));
      }
      const check = JSON.stringify({ model: name, set: set.name, rows: set.rows.length });
      if (!linesOf(checks).includes(check)) {
        // All draws may be those of an interrupted run, so that this one has learned nothing yet.
        const k = Math.max(...SIZES.filter((size) => size <= most));
        last ??= measureDraw(await scores(), choices, name, k, 0).record;
        if (last === undefined) continue;
        const rows = (await scores()).map((scored, place) => ({
          scored,
          row: set.rows[place] as (typeof set.rows)[number],
        }));
        const step = Math.max(1, Math.floor(rows.length / CHECKED));
        await checkThroughService(
          engine,
          model,
          choices,
          last,
          rows.filter((_, place) => place % step === 0),
        );
        appendFileSync(checks, `${check}\n`);
        console.error(`${set.name}: the service decides the same`);
      }
    }
    missed.push(...(await costs(engine, { model, revision }, data, out)));
    const late = all.filter(({ k }) => k >= MOST_ECE.from);
    const ece = mean(late.map((each) => each.ece));
    if (late.length > 0) console.log(`\nECE of learned answers at ${MOST_ECE.from} and more: ${ece.toFixed(3)}`);
    if (ece > MOST_ECE.ece) missed.push(`ECE ${ece.toFixed(3)}`);
    if (missed.length === 0) return;
    console.error(`missed: ${missed.join(', ')}`);
    process.exitCode = 1;
  } finally {
    await engine.close();
  }
}

/** Prints what learning costs, and returns the bounds that are missed. */
async function costs(
  engine: Engine,
  named: { readonly model: string; readonly revision: string },
  data: string,
  out: string,
): Promise<readonly string[]> {
  const [set] = readDataSets(data, { sets: [COSTED] });
  if (set === undefined) return [];
  const choices = (set.rows[0]?.choices ?? []).toSorted();
  const scored = (await scoresOf(engine, named, set, choices, out)).slice(0, COSTED_ROWS);
  const timed = set.rows.slice(0, TIMED);
  const began = performance.now();
  for (const { input, instruction } of timed) {
    const deadline = performance.now() + PATIENCE_MS;
    const terms = { signal: AbortSignal.timeout(PATIENCE_MS), deadline, tenant: 'bench', keyed: true };
    await engine.score({ ...named, input, instruction, choices, vector: true }, terms);
  }
  const cost = learningCost(scored, choices, (performance.now() - began) / timed.length);
  console.log(`\nof a decision among 300 choices what was learned takes ${cost.decision.toFixed(3)} ms of CPU time`);
  console.log(
    `learning ${scored.length} examples for ${choices.length} choices takes ${cost.learning.toFixed(2)} times as long as deciding them`,
  );
  return [
    ...(cost.decision > MOST_COST.decision ? ['the cost of a learned decision'] : []),
    ...(cost.learning > MOST_COST.learning ? ['the cost of learning'] : []),
  ];
}

/** Prints the row of a set and k, and returns the bounds that are missed. */
function report(set: string, k: number, results: readonly Draw[]): readonly string[] {
  const of = (name: 'zeroShot' | 'learned' | 'regression' | 'ece'): number => mean(results.map((each) => each[name]));
  const floor = Math.max(FLOORS[set]?.[k] ?? 0, of('zeroShot') - SLACK);
  const cells = [of('zeroShot'), of('learned'), of('regression'), of('ece'), floor].map((each) => each.toFixed(3));
  console.log(`| ${[set, k, ...cells, results.map(({ rung }) => rung).join(', ')].join(' | ')} |`);
  const gains = results.map(({ learned, regression }) => learned - regression);
  const noise = Math.max(SLACK, 2 * standardError(gains));
  return [
    ...(of('learned') < floor ? [`${set} at ${k}`] : []),
    ...(mean(gains) < -noise ? [`${set} at ${k}: below the plain regression`] : []),
  ];
}

/** The lines of an earlier run. */
function linesOf(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
}

/** The draw of a line; none if the line was not written completely. */
function drawOf(line: string): readonly Draw[] {
  try {
    return [JSON.parse(line) as Draw];
  } catch {
    return [];
  }
}

/** The revision that the model's plain name means, once it is ready. @throws Error if there is none. */
export async function readyRevision(engine: Engine, model: string): Promise<string> {
  for (;;) {
    const found = engine.models().find(({ id, isDefault }) => id === model && isDefault);
    if (found === undefined) throw new Error(`there is no model ${model}`);
    if (found.status === 'ready') return found.revision;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The standard error of the mean of the values; 0 for a single value. */
function standardError(values: readonly number[]): number {
  const middle = mean(values);
  const squares = values.reduce((sum, value) => sum + (value - middle) ** 2, 0);
  return values.length < 2 ? 0 : Math.sqrt(squares / (values.length - 1) / values.length);
}
