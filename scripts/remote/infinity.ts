/**
 * Runs Umpire against Infinity, as infinity.sh describes. Its arguments are the folder of the installed programs and
 * the folder of the checkpoints.
 */
import { join } from 'node:path';
import { RealServer, withServer } from './real-server.ts';
import { calm, frozen, killed, slowed, wrongKey } from './troubles.ts';
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

const [, , bin = '', checkpoints = ''] = process.argv;
const KEY = 'infinity-key-of-a-script';
/** The temperatures of the two packages. */
const TEMPERATURES = { reranker: 1, encoder: 0.05 };

const TEXTS = [
  'I was charged twice for my order',
  'The parcel never arrived and the tracking page is empty',
  'Der Bildschirm bleibt schwarz, seit ich gestern das Update installiert habe',
  'a '.repeat(50).trim(),
  'Who won?',
];
const CHOICE_SETS = [
  ['billing', 'shipping', 'technical support'],
  ['refund', 'cancel', 'invoice', 'help', 'complain', 'praise', 'something else entirely'],
];
const SAMPLE: readonly Asked[] = TEXTS.flatMap((input) =>
  CHOICE_SETS.map((choices) => ({ input, instruction: 'What does the writer want?', choices: [...choices].sort() })),
);

const [FIRST] = SAMPLE as readonly [Asked];

/** The checkpoints' numbers without a server, for each value that is asked. */
async function numbersOf(asked: readonly unknown[]): Promise<readonly unknown[]> {
  const program = [join(bin, 'python'), 'infinity_direct.py', checkpoints];
  return await runPython(program, asked, { HF_HUB_OFFLINE: '1' });
}

const query = ({ input, instruction }: Asked): string => `${instruction} ${input}`;

/**
 * The checkpoints' own numbers for the sample: the reranker's logits for each decision, then the encoder's vectors.
 */
async function numbersOfSample(): Promise<readonly unknown[]> {
  const pairs = SAMPLE.map((asked) => ({ pairs: asked.choices.map((choice) => [query(asked), choice]) }));
  const encoded = SAMPLE.map(({ input, choices }) => ({ texts: [input, ...choices] }));
  return await numbersOf([...pairs, ...encoded]);
}

/** Compares decisions of both packages with the checkpoints' own numbers. */
async function compare(umpire: Umpire, numbers: readonly unknown[]): Promise<void> {
  const cosine = (a: readonly number[], b: readonly number[]): number =>
    a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);
  for (const model of ['reranker', 'encoder'] as const) {
    let largest = 0;
    let others = 0;
    for (const [i, asked] of SAMPLE.entries()) {
      const got = await umpire.decide(model, asked);
      if (got.outcome !== '200') complain(`${model}: ${got.outcome}: ${got.message}`);
      const vectors = (numbers[i + SAMPLE.length] ?? []) as readonly (readonly number[])[];
      const logits =
        model === 'reranker'
          ? (numbers[i] as readonly number[])
          : vectors.slice(1).map((each) => cosine(vectors[0] ?? [], each));
      const expected = distribution(asked.choices, logits, TEMPERATURES[model]);
      largest = Math.max(largest, difference(got.probabilities, expected));
      const highest = Math.max(...Object.values(expected));
      if (expected[got.choice ?? ''] !== highest) others++;
    }
    say(
      `${model}: ${SAMPLE.length} decisions compared with the checkpoint's own, ${others} with another choice, largest difference ${largest.toFixed(7)}`,
    );
    if (largest > 1e-3) complain(`decisions of the ${model} are not those of the checkpoint`);
  }
}

/**
 * Shows that texts which the server would silently cut are refused, and that a package without a tokenizer is not
 * served.
 */
async function tooLong(umpire: Umpire): Promise<void> {
  for (const model of ['reranker', 'encoder']) {
    const { outcome, message } = await umpire.decide(model, { ...FIRST, input: 'a '.repeat(2000) });
    say(`${model}: 2000 words get ${outcome}: ${message}`);
    if (outcome !== '400 input_tokens_exceeded') complain('a text that is too long was decided');
  }
  const status = await umpire.statusOf('untold');
  const told = /options\.tokenizer[^"\\]*/.exec(umpire.log())?.[0];
  say(`a package without a tokenizer is ${status}: ${told}`);
  if (status === 'ready' || told === undefined)
    complain('a package whose server cuts silently was loaded without a tokenizer');
}

function serverOn(port: number): RealServer {
  const model = (name: string): readonly string[] => [
    ...['--model-id', join(checkpoints, name), '--served-model-name', name],
    ...['--engine', 'torch', '--device', 'cpu', '--dtype', 'float32'],
    ...['--no-bettertransformer', '--no-compile', '--no-model-warmup'],
  ];
  return new RealServer((key) => ({
    program: join(bin, 'infinity_emb'),
    args: [
      ...['v2', ...model('reranker'), ...model('encoder')],
      ...['--host', '127.0.0.1', '--port', String(port), '--api-key', key],
    ],
    env: { HF_HUB_OFFLINE: '1', DO_NOT_TRACK: '1', INFINITY_ANONYMOUS_USAGE_STATS: '0', OMP_NUM_THREADS: '1' },
    health: `http://127.0.0.1:${port}/health`,
  }));
}

/** Writes the packages `reranker`, `encoder` and `untold`, which has no tokenizer. Returns the folder of the first. */
async function writePackages(models: string, port: number, choice: string): Promise<string> {
  const common = {
    // The limits are small, so that a busy machine is done with a batch in time.
    limits: { input_tokens: 64, candidate_tokens: 8, choices: 8 },
    tokenizer: true,
    beside: { token: KEY },
    canary: { ...FIRST, choice },
  };
  const serverAt = (path: string) => ({ address: `127.0.0.1:${port}`, path, token_file: 'token' });
  const bounds = { batch: { rows: 4 }, timeout_ms: 30_000 };
  const reranker = {
    dialect: 'rerank',
    server: serverAt('/rerank'),
    ...{ model: 'reranker', shape: 'documents', scores: 'logit', raw: 'raw_scores', cuts: 'silently' },
    templates: { query: '{instruction} {input}', document: '{choice}' },
    tokenizer: 'tokenizer.json',
    temperature: TEMPERATURES.reranker,
    ...bounds,
  };
  const folder = await writeRemotePackage(models, { ...common, id: 'reranker', options: reranker });
  await writeRemotePackage(models, {
    ...{ ...common, id: 'untold', tokenizer: false },
    options: { ...reranker, tokenizer: undefined, bytes_per_token: 2 },
  });
  await writeRemotePackage(models, {
    ...common,
    id: 'encoder',
    canary: { ...FIRST, choice: 'billing' },
    options: {
      ...{ dialect: 'embeddings', server: serverAt('/embeddings'), model: 'encoder', cuts: 'silently' },
      templates: { choice: '{choice}', input: '{input}' },
      ...{ tokenizer: 'tokenizer.json', temperature: TEMPERATURES.encoder, ...bounds },
    },
  });
  return folder;
}

await withFolder(async (work) => {
  const port = await freePort();
  const server = serverOn(port);
  const models = join(work, 'models');
  await writeLocalPackage(models);
  await withServer(server, KEY, async () => {
    const numbers = await numbersOfSample();
    const logits = numbers[0] as readonly number[];
    const folder = await writePackages(models, port, FIRST.choices[logits.indexOf(Math.max(...logits))] ?? '');
    await server.ready();
    await withUmpire(models, ['minilm-l6', 'reranker', 'encoder'], async (umpire) => {
      await compare(umpire, numbers);
      await tooLong(umpire);
      const scene = { umpire, server, model: 'reranker', asked: FIRST, key: KEY };
      await calm(scene);
      await killed(scene);
      await frozen(scene);
      await slowed(scene);
      await wrongKey(scene, folder, 'token');
    });
  });
});
