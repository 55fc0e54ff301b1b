/**
 * Whether a change of the code changes an answer: `node scripts/answers.ts record FILE [CHECKOUT]` writes what the
 * shipped packages answer to seeded decisions, every probability with all its bits; `node scripts/answers.ts compare
 * FILE [CHECKOUT]` makes the same decisions again and exits with 1 if one differs. The decisions are made of the rows
 * in `bench/eval`, the same on every machine; the answers are the same on machines with the same kind of CPU. It is
 * this checkout that answers unless another is named, 2,500 times for each package; with `--each N` only to the first N
 * decisions.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Row, readFolders } from '../bench/eval/data-sets.ts';
import type * as Create from '../src/engine/create-engine.ts';
import type { ScoreJob, ScoreOutcome } from '../src/engine/engine.ts';
import { ROOT } from './attacks/target.ts';

const SEED = 20_261_126;

/** Decisions that are in the queue at a time. */
const AT_A_TIME = 4;

/** Milliseconds that a decision may take, on a machine that is busy with other things, too. */
const PATIENCE = 24 * 3600 * 1000;

/** Texts that no model was made for. None is empty: the service refuses that. */
const ODD_TEXTS: readonly string[] = [
  ' \t\u00a0\u2028\ufeff ',
  'Das Paket ist noch nicht da. 我的包裹两个星期了还没到 أين طردي؟',
  'e\u0301te\u0301 Z\u0351\u036b\u0343 👩‍👩‍👧‍👦🏳️‍🌈 \u202eabc\u202c',
  'a\u0001b\u007fc\u0378d\ue000f 𐌰𐌱𐌲',
  'no '.repeat(6000),
];

const { values, positionals } = parseArgs({
  options: { each: { type: 'string', default: '2500' } },
  allowPositionals: true,
});
const [mode, file, checkout = ROOT] = positionals;
if ((mode !== 'record' && mode !== 'compare') || file === undefined) {
  throw new Error('usage: node scripts/answers.ts record|compare FILE [CHECKOUT] [--each N]');
}

const lines: string[] = [];
const { createEngine } = (await import(join(resolve(checkout), 'src/engine/create-engine.ts'))) as typeof Create;
const logger = { debug() {}, info() {}, warn: console.error, error: console.error };
const modelsDir = join(resolve(checkout), 'models');
const engine = await createEngine({ modelsDir, engines: 1, niceness: 0, logger });
try {
  while (!engine.ready()) await new Promise((done) => setTimeout(done, 50));
  const rows = readFolders(['everyday', 'sample'].map((folder) => join(ROOT, 'bench/eval', folder))).flatMap(
    (set) => set.rows,
  );
  for (const { id, revision } of engine.models()) {
    const random = randomFrom(SEED);
    const jobs = Array.from({ length: Number(values.each) }, () => jobOf(rows, random));
    const answers = new Array<string>(jobs.length);
    let next = 0;
    const ask = async (): Promise<void> => {
      for (let place = next++; place < jobs.length; place = next++) {
        const job = { model: id, revision, ...(jobs[place] as Question) };
        const deadline = performance.now() + PATIENCE;
        const terms = { deadline, tenant: 'a', keyed: false, signal: new AbortController().signal };
        answers[place] = `${id} ${place} ${shown(await engine.score(job, terms))}`;
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, ask));
    lines.push(...answers);
    if (mode === 'record') writeFileSync(file, `${lines.join('\n')}\n`);
    console.error(`${id}@${revision}: ${answers.length} answers`);
  }
} finally {
  await engine.close();
}

if (mode === 'compare') {
  const recorded = new Set(readFileSync(file, 'utf8').trimEnd().split('\n'));
  const different = lines.filter((line) => !recorded.has(line));
  for (const line of different.slice(0, 10)) console.error(`not as recorded: ${line}`);
  console.log(`${lines.length - different.length} of ${lines.length} answers are as recorded`);
  if (different.length > 0) process.exitCode = 1;
}

type Question = Pick<ScoreJob, 'input' | 'instruction' | 'choices' | 'vector'>;

/** The row's question, or one made of parts of several rows, with choices in code-unit order. */
function jobOf(rows: readonly Row[], random: () => number): Question {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const row = pick(rows);
  const kind = random();
  const own = kind < 0.7 ? row.choices : [...row.choices, ...pick(rows).choices, ...pick(rows).choices];
  const input = kind > 0.97 ? pick(ODD_TEXTS) : kind > 0.95 ? row.input : row.input.slice(0, 300);
  const choices = kind > 0.99 ? [...own, 'very '.repeat(200)] : own;
  return {
    input,
    instruction: random() < 0.9 ? row.instruction : '',
    choices: [...new Set(choices)].sort(),
    vector: random() < 0.1,
  };
}

/** All that an outcome says, except for times. */
function shown(outcome: ScoreOutcome): string {
  if (outcome.kind !== 'scored') return JSON.stringify(outcome);
  const { probabilities, vector, inputTokens, unread } = outcome;
  const bits = (numbers: Float64Array | Float32Array): string =>
    Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength).toString('base64');
  return JSON.stringify({ probabilities: bits(probabilities), vector: vector && bits(vector), inputTokens, unread });
}

/** Numbers in [0, 1) that depend on the seed alone (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
