/**
 * Scaling of the engine, without the wire: throughput with one engine process and with one for each core, the cost of a
 * decision by its tokens and choices, and what the pool and its messages add to a bare run. Writes the plots
 * `bench/scaling/tokens.svg` and `choices.svg`.
 */
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { createEngine } from '../../src/engine/create-engine.ts';
import type { Engine, JobTerms, ScoreJob } from '../../src/engine/engine.ts';
import { runBare } from '../baseline/bare.ts';
import { bodyOf, choicesOf } from '../load/requests.ts';
import { writePlot } from '../report/plot.ts';
import { median, quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';

const modelsDir = fileURLToPath(new URL('../../models', import.meta.url));
const log = { debug() {}, info() {}, warn: console.error, error: console.error };

/** Runs the benchmark. `--seconds N` for each measurement of throughput, `--repeats N` of each decision. */
export async function run(options: Record<string, number>): Promise<void> {
  const { seconds = 5, repeats = 40 } = options;
  await throughput(seconds);
  const engine = await readyEngine(1);
  const tokens = [16, 32, 64, 128, 256, 384, 494];
  const choices = [2, 8, 32, 64, 128, 200, 300];
  const byTokens = new Map<string, [number, number][]>();
  const byChoices = new Map<string, [number, number][]>();

  const bare: [number, number][] = [];
  for (const count of tokens) bare.push([count, median((await runBare(1, 1, count)).latencies)]);
  byTokens.set('bare run', bare);
  for (const number of [2, 300]) {
    const points: [number, number][] = [];
    for (const count of tokens) points.push([count, await medianTime(engine, job(count, number), repeats)]);
    byTokens.set(`${number} choices`, points);
  }
  for (const count of [16, 64, 256]) {
    const points: [number, number][] = [];
    for (const number of choices) points.push([number, await medianTime(engine, job(count, number), repeats)]);
    byChoices.set(`${count} tokens`, points);
  }
  const fresh: [number, number][] = [];
  for (const number of choices) {
    const times: number[] = [];
    for (let i = 0; i < 5; i++) {
      times.push(
        await time(engine, {
          ...job(16, number),
          choices: choicesOf(number).map((choice) => `${choice} ${i} ${number}`),
        }),
      );
    }
    fresh.push([number, median(times)]);
  }
  await engine.close();

  table('tokens of the input', tokens, byTokens);
  table('choices', choices, new Map([...byChoices, ['16 tokens, not cached', fresh]]));
  const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
  const lines = (map: ReadonlyMap<string, [number, number][]>) => [...map].map(([name, points]) => ({ name, points }));
  writePlot(
    here('tokens.svg'),
    'A decision by the tokens of its input, choices cached',
    'tokens',
    'ms',
    lines(byTokens),
  );
  writePlot(here('choices.svg'), 'A decision by its choices, cached', 'choices', 'ms', lines(byChoices));
}

/** Closed loops on one engine process and on one for each core, compared with bare loops in as many processes. */
async function throughput(seconds: number): Promise<void> {
  const rows: string[][] = [];
  for (const count of new Set([1, availableParallelism()])) {
    const bare = await runBare(count, seconds, 58);
    const engine = await readyEngine(count);
    await engine.prepare(job(58, 8), terms());
    for (const callers of [1, 8 * count]) {
      const latencies = await closedLoop(engine, callers, seconds);
      const perSecond = latencies.length / seconds;
      const added = median(latencies) - median(bare.latencies);
      rows.push([
        `${count} engine${count > 1 ? 's' : ''}, ${callers} caller${callers > 1 ? 's' : ''}`,
        bare.perSecond.toFixed(0),
        perSecond.toFixed(0),
        (perSecond / bare.perSecond).toFixed(2),
        quantile(latencies, 0.5).toFixed(2),
        callers === 1 ? `${(1000 * added).toFixed(0)}` : '',
      ]);
    }
    await engine.close();
  }
  printTable(['pool alone, 58 + 6 tokens, 8 choices', 'bare/s', 'decisions/s', 'ratio', 'p50 ms', 'added µs'], rows);
}

async function closedLoop(engine: Engine, callers: number, seconds: number): Promise<readonly number[]> {
  const latencies: number[] = [];
  const end = performance.now() + seconds * 1000;
  const loop = async (_: unknown, index: number): Promise<void> => {
    while (performance.now() < end) latencies.push(await time(engine, job(58, 8, index)));
  };
  await Promise.all(Array.from({ length: callers }, loop));
  return latencies;
}

async function readyEngine(engines: number): Promise<Engine> {
  const engine = await createEngine({ modelsDir, engines, logger: log });
  while (!engine.ready()) await new Promise((resolve) => setTimeout(resolve, 20));
  await new Promise((resolve) => setTimeout(resolve, 1500));
  return engine;
}

function job(tokens: number, choices: number, seed = 0): ScoreJob {
  const body = bodyOf(tokens, choices, seed);
  return { ...body, revision: 'r1', choices: body.choices.toSorted() };
}

function terms(): JobTerms {
  return { signal: new AbortController().signal, deadline: performance.now() + 30_000, tenant: 'bench', keyed: false };
}

async function time(engine: Engine, request: ScoreJob): Promise<number> {
  const began = performance.now();
  await engine.score(request, terms());
  return performance.now() - began;
}

async function medianTime(engine: Engine, request: ScoreJob, repeats: number): Promise<number> {
  await time(engine, request);
  const times: number[] = [];
  for (let i = 0; i < repeats; i++) times.push(await time(engine, request));
  return median(times);
}

function table(
  title: string,
  values: readonly number[],
  columns: ReadonlyMap<string, readonly (readonly [number, number])[]>,
): void {
  printTable(
    [title, ...[...columns.keys()].map((name) => `${name}, ms`)],
    values.map((value, i) => [
      String(value),
      ...[...columns.values()].map((points) => points[i]?.[1].toFixed(2) ?? ''),
    ]),
  );
}
