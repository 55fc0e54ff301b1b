/**
 * `npm run bench -- teach [--draws 1] [--sets trec6,ag_news] [--out bench/learn/out] [--model umpire-mini] [--data
 * FOLDER] [--right 0.8] [--teacher MODEL [--models FOLDER]]`: what catalogs learn from a model, or from teachers that
 * are right in 70, 80 and 90 %, on sets of `../shared/data/eval`. Two thirds of a set are texts without labels, of
 * which all or half are asked about, and the others are decided. Unless it is a model, a teacher is simulated: it errs
 * at random, or says what the model itself likes best of the wrong choices, and it is as sure of every answer as it is
 * right in the mean. The service's own engine scores each text once. Every result is a line of `taught.jsonl` in the
 * folder of `--out`, from which an interrupted run continues.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Learned } from '../../src/domain/learned.ts';
import { createEngine } from '../../src/engine/create-engine.ts';
import { judge } from '../../src/learning/learn.ts';
import { type AnswerQuality, qualityOf } from '../../src/learning/quality.ts';
import type { ScoredExample } from '../../src/learning/regression.ts';
import { chooseTexts, learnTaught } from '../../src/learning/teaching.ts';
import { basisOf } from '../../src/stores/catalog-additions.ts';
import { SILENT_LOG } from '../../src/stores/stores.ts';
import { random } from '../../test/support/random.ts';
import { readDataSets } from '../eval/data-sets.ts';
import { readyRevision } from '../learn/run.ts';
import { scoresOf } from '../learn/scores.ts';

const SETS = ['banking77', 'clinc150', 'bitext_support', 'trec6', 'ag_news', 'newsgroups20'];
const DATA = fileURLToPath(new URL('../../../shared/data/eval', import.meta.url));
const OUT = fileURLToPath(new URL('../learn/out', import.meta.url));
const MODELS = fileURLToPath(new URL('../../models', import.meta.url));
/** The share of a set that has no labels. */
const UNLABELLED = 2 / 3;
const TEACHERS = [0.9, 0.8, 0.7];
/** The accuracy that is required of the pupil of the teacher that is right in 90 %, if all texts are asked about. */
const FLOORS: Readonly<Record<string, number>> = { banking77: 0.8, clinc150: 0.86, trec6: 0.82 };
/** Texts with labels of people, where there are any. */
const LABELS = 40;
/** How much accuracy any teacher may cost against zero-shot. */
const SLACK = 0.01;

/** How a teacher errs: to any other choice, or to the one that the model itself likes best of the wrong ones. */
type SimulatedErrors = 'at random' | 'as the model';

/** What was asked about: all, or all but what people label; half, as `teach` chooses or as they come. */
type Asked = 'all' | 'all but people’s' | 'half, chosen' | 'half, as they come';

/** A real teacher has errors of its own. */
type Errors = SimulatedErrors | 'its own';

interface Case {
  readonly model: string;
  readonly set: string;
  readonly draw: number;
  /** The share of right answers of a simulated teacher, or the name of a real one. */
  readonly right: number | string;
  readonly errors: Errors;
  readonly asked: Asked;
}

interface Result extends Case {
  readonly texts: number;
  readonly decided: number;
  readonly teacher: number;
  readonly zeroShot: number;
  readonly pupil: number;
  readonly ece: number;
  readonly rung: string;
}

/** Prints a row for each case. The process ends with status 1 if a floor is missed. */
export async function run(
  { draws = 1, right: only }: Record<string, number>,
  { sets, out = OUT, model = 'umpire-mini', data = DATA, teacher, models = MODELS }: Record<string, string> = {},
): Promise<void> {
  mkdirSync(out, { recursive: true });
  const file = join(out, 'taught.jsonl');
  const done = existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line): Result => JSON.parse(line))
    : [];
  const logger = { ...SILENT_LOG, debug: () => {} };
  const engine = await createEngine({
    modelsDir: models,
    models: [model, ...(teacher === undefined ? [] : [teacher])],
    engines: 2,
    logger,
  });
  const missed: string[] = [];
  try {
    const revision = await readyRevision(engine, model);
    const real = teacher && { model: teacher, revision: await readyRevision(engine, teacher) };
    console.log('| set | asked | teacher | errors | zero-shot | pupil | ECE | floor | rungs |');
    console.log('|---|---|---|---|---|---|---|---|---|');
    for (const set of readDataSets(data, { sets: sets?.split(',') ?? SETS })) {
      const choices = (set.rows[0]?.choices ?? []).toSorted();
      let scores: readonly ScoredExample[] | undefined;
      let told: readonly ScoredExample[] | undefined;
      const cases = real ? [[`${real.model}@${real.revision}`, 'its own', 'all'] as const] : casesOf(only);
      for (const [right, errors, asked] of cases) {
        const results: Result[] = [];
        for (let draw = 0; draw < draws; draw++) {
          const facts: Case = { model: `${model}@${revision}`, set: set.name, draw, right, errors, asked };
          let result = done.find((each) =>
            Object.entries(facts).every(([name, value]) => each[name as keyof Case] === value),
          );
          if (result === undefined) {
            scores ??= await scoresOf(engine, { model, revision }, set, choices, out);
            if (real) told ??= await scoresOf(engine, real, set, choices, out);
            result = measure(scores, choices, facts, told);
            appendFileSync(file, `${JSON.stringify(result)}\n`);
          }
          results.push(result);
        }
        missed.push(...report(results));
      }
    }
  } finally {
    await engine.close();
  }
  if (missed.length === 0) return;
  console.error(`missed: ${missed.join('; ')}`);
  process.exitCode = 1;
}

/** `only`: how often the teachers are right that are wanted; all if undefined. */
function casesOf(only?: number) {
  const cases: readonly (readonly [number, SimulatedErrors, Asked])[] = [
    ...TEACHERS.flatMap((right) => [[right, 'at random', 'all'] as const, [right, 'as the model', 'all'] as const]),
    [0.9, 'at random', 'all but people’s'],
    [0.7, 'as the model', 'all but people’s'],
    [0.9, 'at random', 'half, chosen'],
    [0.9, 'at random', 'half, as they come'],
  ];
  return cases.filter(([right]) => only === undefined || right === only);
}

/** `told`: what a real teacher says of each text. */
function measure(
  scores: readonly ScoredExample[],
  choices: readonly string[],
  facts: Case,
  told?: readonly ScoredExample[],
): Result {
  const { model, draw, right, errors, asked } = facts;
  const next = random(1 + draw);
  const order = scores.map((each, row) => ({ each, row, at: next() })).toSorted((a, b) => a.at - b.at);
  const count = Math.round(UNLABELLED * scores.length);
  const labelled = asked === 'all but people’s' ? LABELS : 0;
  const people = order.slice(0, labelled).map(({ each }) => each);
  const asking = order.slice(labelled, count);
  const unlabelled = asking.map(({ each }) => each);
  const unseen = order.slice(count).map(({ each }) => each);
  const half = Math.round(count / 2);
  const places =
    asked === 'half, chosen'
      ? chooseTexts(unlabelled, half)
      : Array.from({ length: asked.startsWith('all') ? unlabelled.length : half }, (_, place) => place);
  const taken = new Set(places);
  let hits = 0;
  const pool = unlabelled.map((each, place) => {
    const said =
      told?.[(asking[place] as (typeof asking)[number]).row]?.probabilities ??
      saidOf(each, right as number, errors as SimulatedErrors, next);
    if (taken.has(place) && said.indexOf(Math.max(...said)) === each.label) hits++;
    const { probabilities, vector } = each;
    return { probabilities, vector, word: taken.has(place) ? { said } : undefined };
  });
  const taught = learnTaught({ pool, people, sure: 0.5 }, choices, { model, basis: basisOf(choices, undefined) });
  const { record } = taught?.lesson ?? {};
  const zeroShot = qualityFor(undefined);
  const pupil = record === undefined ? zeroShot : qualityFor(new Learned(record));
  return {
    ...facts,
    ...{ texts: places.length, decided: unseen.length, teacher: hits / places.length },
    ...{ zeroShot: zeroShot.accuracy.share, pupil: pupil.accuracy.share, ece: pupil.ece },
    rung: record?.rung ?? 'zero-shot',
  };

  function qualityFor(state: Learned | undefined): AnswerQuality {
    return qualityOf(
      unseen.map(({ probabilities, vector, label }) => {
        const decided = state?.decide(probabilities, vector) ?? probabilities;
        return judge(choices, label, (k) => decided[k] as number);
      }),
    );
  }
}

/** What a simulated teacher says. */
function saidOf({ probabilities, label }: ScoredExample, right: number, errors: SimulatedErrors, next: () => number) {
  const others = Array.from(probabilities, (p, k) => ({ p, k })).filter(({ k }) => k !== label);
  const [isRight, drawn] = [next() < right, next()];
  const wrong =
    errors === 'as the model'
      ? others.reduce((most, each) => (each.p > most.p ? each : most))
      : (others[Math.floor(drawn * others.length)] as (typeof others)[number]);
  const choice = isRight ? label : wrong.k;
  return probabilities.map((_, k) => (k === choice ? right : (1 - right) / others.length));
}

/** Prints the row of a case, and returns what it misses. */
function report(results: readonly Result[]): readonly string[] {
  const [{ set, asked, errors, right, texts }] = results as [Result];
  const of = (name: 'teacher' | 'zeroShot' | 'pupil' | 'ece'): number =>
    results.reduce((sum, each) => sum + each[name], 0) / results.length;
  const own = right === 0.9 && asked === 'all' ? (FLOORS[set] ?? 0) : 0;
  const floor = Math.max(own, of('zeroShot') - SLACK);
  const figures = [of('zeroShot'), of('pupil'), of('ece'), floor].map((each) => each.toFixed(3));
  const rungs = [...new Set(results.map(({ rung }) => rung))].join(', ');
  console.log(`| ${[set, `${texts} (${asked})`, of('teacher').toFixed(3), errors, ...figures, rungs].join(' | ')} |`);
  return of('pupil') < floor ? [`${set}, ${right} ${errors}`] : [];
}
