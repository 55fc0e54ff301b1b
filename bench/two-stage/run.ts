/**
 * What a decision of each two-stage model costs, compared with a bare run of its encoder over the same premise, in one
 * process on one core, in turns, so that a busy machine slows both alike. Choices are cached, as those of a catalog
 * are, and so is the instruction; the last row has an instruction that is new each time.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unhindered } from '../../src/engine/families/family.ts';
import { readTwoStageOptions } from '../../src/engine/families/two-stage/options.ts';
import { packFeeds } from '../../src/engine/families/two-stage/stages.ts';
import { type ListedPackage, listPackages } from '../../src/engine/package-tools/check.ts';
import { readManifest, readOptions } from '../../src/engine/packages/manifest.ts';
import { loadTokenizer } from '../../src/engine/text/tokenizer.ts';
import { LoadedModels } from '../../src/engine/worker/models.ts';
import { loadGraph } from '../../src/engine/worker/runtime.ts';
import { median, quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';

// What an English vocabulary cuts the instruction into.
const INSTRUCTION_TOKENS = 8;
// The instruction, and the words of which 300 choices and the input are made.
const INSTRUCTION = 'Which of these does the customer want?';
const THINGS = ['order', 'card', 'account', 'refund', 'address', 'invoice', 'ticket', 'password', 'parcel', 'booking'];
const VERBS = ['change', 'cancel', 'check', 'report', 'open', 'close', 'move', 'renew', 'find', 'share'];
const KINDS = ['', 'business ', 'second '];
const labels = KINDS.flatMap((kind) => VERBS.flatMap((verb) => THINGS.map((thing) => `${verb} ${kind}${thing}`)));

/**
 * Numbers of choices, and how long a decision among so many may take with umpire-mini, as a multiple of the bare run.
 */
const BOUNDS: readonly (readonly [choices: number, atMost: number])[] = [
  [2, 2.4],
  [8, 3.1],
  [32, 6.2],
  [300, 7.6],
];

/**
 * Runs the benchmark and prints a table for each model. `--rounds N`; `--tokens N` of the premise by an English
 * vocabulary, special ones included; other vocabularies cut the same words into more tokens, which are shown. The
 * models folder is `UMPIRE_MODELS_DIR` or `models`.
 */
export async function run({ rounds = 60, tokens = 64 }: Record<string, number>): Promise<void> {
  const modelsDir = process.env.UMPIRE_MODELS_DIR ?? fileURLToPath(new URL('../../models', import.meta.url));
  const found = (await listPackages(modelsDir)).filter(({ family, isDefault }) => family === 'two-stage' && isDefault);
  if (found.length === 0) throw new Error(`${modelsDir} has no two-stage package`);
  for (const each of found) await measurePackage(modelsDir, each, rounds, tokens - 3);
}

async function measurePackage(modelsDir: string, found: ListedPackage, rounds: number, words: number): Promise<void> {
  const folder = join(modelsDir, found.id, found.revision);
  const { value: manifest } = readManifest(readFileSync(join(folder, 'model.json'), 'utf8'), found.id, found.revision);
  const options = readOptions(manifest.options, readTwoStageOptions);
  const models = new LoadedModels(32 * 2 ** 20);
  const loaded = await models.load({
    key: 'model',
    folder,
    manifest,
    profile: undefined,
    proven: false,
    inDoubt: false,
  });
  if (loaded.kind === 'load_failed') throw new Error(loaded.problems.join('; '));
  // A decision is compared with the larger encoder: that of stage B, if it has weights of its own.
  const { stageBWeights } = options;
  const larger = stageBWeights.length > 0;
  const encoder = larger
    ? await loadGraph(
        join(folder, options.stageB),
        stageBWeights.map((file) => join(folder, file)),
      )
    : await loadGraph(join(folder, options.stageA));
  const tokenizer = await loadTokenizer(join(folder, options.tokenizer));
  const input = Array.from({ length: words - INSTRUCTION_TOKENS }, (_, i) => VERBS[i % VERBS.length]).join(' ');
  const tokens = tokenizer.ids(INSTRUCTION).length + tokenizer.ids(input).length + 3;
  const ids = Array.from({ length: tokens }, (_, i) => 2000 + i);
  const feeds = larger
    ? packFeeds([], ids.slice(0, tokens - 4), [[]], options.special)
    : { input_ids: { data: BigInt64Array.from(ids, BigInt), dims: [1, tokens] } };

  const bare = () => encoder.run(feeds);
  let asks = 0;
  const decide = async (choices: number, ask: string): Promise<void> => {
    const texts = { input, instruction: ask, choices: labels.slice(0, choices).sort() };
    const message = {
      kind: 'score',
      job: 1,
      key: 'model',
      part: '',
      vector: false,
      timeLeft: 60_000,
      ...texts,
    } as const;
    const result = await models.run(message, 0, unhindered);
    if (result.kind !== 'scored') throw new Error(`the decision ended as ${result.kind}`);
    if (ask === INSTRUCTION && result.inputTokens !== tokens - 3) throw new Error(`${result.inputTokens + 3} tokens`);
  };
  const works = new Map<string, () => Promise<unknown>>([
    ['bare run of the encoder', bare],
    ...BOUNDS.map(([n]) => [`${n} cached choices`, () => decide(n, INSTRUCTION)] as const),
    ['8 cached choices, new instruction', () => decide(8, `Which of these does customer ${asks++} want?`)],
  ]);
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const began = performance.now();
    await work();
    return performance.now() - began;
  };

  const times = new Map([...works.keys()].map((name): [string, number[]] => [name, []]));
  for (let round = -5; round < rounds; round++) {
    for (const [name, work] of works) {
      const time = await timed(work);
      if (round >= 0) times.get(name)?.push(time);
    }
  }
  const [encoded = []] = times.values();
  printTable(
    [`${found.id}@${found.revision}, ${tokens} tokens`, 'p50 ms', 'p10 ms', 'ratio of p50', 'ratio of p10', 'at most'],
    [...times].map(([name, all], place) => {
      const ratio = (q: number): string => (quantile(all, q) / quantile(encoded, q)).toFixed(2);
      const figures = [median(all).toFixed(2), quantile(all, 0.1).toFixed(2), ratio(0.5), ratio(0.1)];
      return [name, ...figures, (found.id === 'umpire-mini' ? BOUNDS[place - 1]?.[1].toFixed(1) : undefined) ?? ''];
    }),
  );
  await encoder.dispose();
  await models.unload('model');
}
