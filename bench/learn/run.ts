/**
 * `npm run bench -- learn [--draws 5] [--most 16]`: what catalogs learn from k examples of each choice, beside zero-shot, on the sets of
 * `../shared/data/eval`. Texts are scored once by the engine that serves; examples are drawn, learned from, and all others decided by what was stored.
 */
import { fileURLToPath } from 'node:url';
import { createLearned } from '../../src/domain/learned.ts';
import { judge, learn, MIN_EXAMPLES, type ScoredExample } from '../../src/domain/learning/learn.ts';
import { qualityOf } from '../../src/domain/learning/quality.ts';
import { createEngine } from '../../src/engine/create-engine.ts';
import { silentLog } from '../../src/stores/log.ts';
import { type DataSet, readDataSets } from '../eval/data-sets.ts';

/** The least accuracy by the number of examples of each choice. */
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
const MODEL = 'umpire-mini';
const SIZES = [1, 2, 4, 8, 16];
const DATA = fileURLToPath(new URL('../../../shared/data/eval', import.meta.url));
const PATIENCE_MS = 600_000;

/** Prints a row for each set and k; ends with status 1 where a floor is missed. */
export async function run({ draws = 5, most = 16 }: Record<string, number>): Promise<void> {
  const missed: string[] = [];
  console.log('| set | k | zero-shot | learned | ECE | floor | rungs |\n|---|---|---|---|---|---|---|');
  for (const set of readDataSets(DATA, { sets: Object.keys(FLOORS) })) {
    const choices = (set.rows[0]?.choices ?? []).toSorted();
    const rows = await scoreAll(set, choices);
    for (const k of SIZES.filter((size) => size <= most)) {
      const results = Array.from({ length: draws }, (_, seed) => measure(rows, choices, k, seed));
      const mean = (of: (each: (typeof results)[number]) => number): number =>
        results.reduce((sum, each) => sum + of(each), 0) / results.length;
      const [zeroShot, learned] = [mean((each) => each.zeroShot), mean((each) => each.learned)];
      const floor = Math.max(FLOORS[set.name]?.[k] ?? 0, zeroShot - 0.01);
      if (learned < floor) missed.push(`${set.name} at ${k}`);
      const cells = [set.name, k, zeroShot.toFixed(3), learned.toFixed(3), mean(({ ece }) => ece).toFixed(3)];
      console.log(`| ${[...cells, floor.toFixed(3), results.map(({ rung }) => rung).join(', ')].join(' | ')} |`);
    }
  }
  if (missed.length === 0) return;
  console.error(`below the floor: ${missed.join(', ')}`);
  process.exitCode = 1;
}

function measure(rows: readonly ScoredExample[], choices: readonly string[], k: number, seed: number) {
  const { examples, others } = draw(rows, choices.length, k, seed);
  const quality = (decide: (row: ScoredExample) => Float64Array) =>
    qualityOf(
      others.map((row) => {
        const probabilities = decide(row);
        return judge(choices, row.label, (choice) => probabilities[choice] as number);
      }),
    );
  const zeroShot = quality(({ probabilities }) => probabilities);
  const facts = { model: MODEL, basis: '' };
  const record = examples.length < MIN_EXAMPLES ? undefined : learn(examples, choices, facts).record;
  const state = record === undefined ? undefined : createLearned(record);
  const after = state === undefined ? zeroShot : quality((row) => state.decide(row.probabilities, row.vector));
  return {
    zeroShot: zeroShot.accuracy.share,
    learned: after.accuracy.share,
    ece: after.ece,
    rung: record?.rung ?? 'zero-shot',
  };
}

/** k rows of each choice at random, or all but one of those that there are; and the others. */
function draw(rows: readonly ScoredExample[], choices: number, k: number, seed: number) {
  const next = random(1000 * seed + k);
  const order = [...rows];
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [order[i], order[j]] = [order[j] as ScoredExample, order[i] as ScoredExample];
  }
  const counts = Array.from({ length: choices }, (_, choice) => rows.filter(({ label }) => label === choice).length);
  const taken = new Array<number>(choices).fill(0);
  const examples: ScoredExample[] = [];
  const others: ScoredExample[] = [];
  for (const row of order) {
    if ((taken[row.label] as number) < Math.min(k, (counts[row.label] as number) - 1)) {
      taken[row.label] = (taken[row.label] as number) + 1;
      examples.push(row);
    } else others.push(row);
  }
  return { examples, others };
}

/** The same numbers below 1 for the same seed (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

async function scoreAll({ rows }: DataSet, choices: readonly string[]): Promise<readonly ScoredExample[]> {
  const modelsDir = fileURLToPath(new URL('../../models', import.meta.url));
  const engine = await createEngine({ modelsDir, engines: 2, logger: { ...silentLog, debug: () => {} } });
  try {
    let revision = '';
    while (revision === '') {
      await new Promise((resolve) => setTimeout(resolve, 50));
      revision = engine.models().find((each) => each.id === MODEL && each.status === 'ready')?.revision ?? '';
    }
    const scored = new Array<ScoredExample>(rows.length);
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let place = next++; place < rows.length; place = next++) {
        const { input, instruction, label } = rows[place] as (typeof rows)[number];
        const deadline = performance.now() + PATIENCE_MS;
        const terms = { signal: AbortSignal.timeout(PATIENCE_MS), deadline, tenant: 'bench', keyed: true };
        const outcome = await engine.score(
          { model: MODEL, revision, input, instruction, choices, vector: true },
          terms,
        );
        if (outcome.kind !== 'scored') throw new Error(`a text ended as ${outcome.kind}`);
        scored[place] = { probabilities: outcome.probabilities, vector: outcome.vector, label: choices.indexOf(label) };
      }
    };
    await Promise.all([lane(), lane(), lane()]);
    return scored;
  } finally {
    await engine.close();
  }
}
