/** The two-stage family: a small package in the real runtime, and what is refused as one. */
import test from 'ava';
import { until } from '../../../support/redis.ts';
import { job, probabilitiesOf, startEngine, terms } from '../../support/engine.ts';
import { encoderGraph, modelsFolder, packReaderGraph, tokenId, writePackage } from '../../support/packages.ts';

const zeros = new Array<number>(8).fill(0);
const FINDER = { near: 1, asked: 0.5, own: zeros, segment: [zeros], instruction: [zeros] };
const SMALL = {
  id: 'staged',
  graph: encoderGraph(),
  files: {
    'b.onnx': packReaderGraph(),
    'symbols.json': Buffer.from('{"😀": " z "}'),
    'finder.json': Buffer.from(JSON.stringify(FINDER)),
  },
  manifest: {
    family: 'two-stage',
    limits: { input_tokens: 200, candidate_tokens: 12, choices: 100 },
    canary: { input: 'abc', instruction: 'abc', choices: ['abc', 'zzz'], choice: 'zzz' },
    options: {
      graphs: { stage_a: 'model.onnx', stage_b: 'b.onnx' },
      tokenizer: 'tokenizer.json',
      symbols: 'symbols.json',
      special_tokens: { cls: tokenId('[CLS]'), sep: tokenId('[SEP]'), mask: tokenId('[UNK]'), unk: tokenId('[UNK]') },
      best: 8,
      pack_tokens: 40,
      stack: {
        lean: 0.5,
        residuals: ['none'],
        features: ['one', 'about'],
        alpha: [-5, 0],
        beta: [1, 0.1],
        a_temperature: [0, 0],
      },
      windows: {
        premise_tokens: 30,
        carried_instruction_tokens: 10,
        segment_tokens: 12,
        least_tokens: 4,
        stop_tokens: [1, 2, 3, 4],
        finder: 'finder.json',
        first_lead: 1,
        read: 3,
        kappa_confidence: 1,
        kappa_relevance: 1,
      },
    },
  },
};

test('a small package decides by both stages, in any order and with any length of text', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SMALL) });
  const offered = ['abc', 'mno', '😀', 'kLm', 'd_e', 'f', 'g', 'hi', 'zz'];
  const request = job({ model: 'staged', choices: offered });
  const first = probabilitiesOf(request, await engine.score(request, terms()));
  // Stage B reads the symbol as the last letter; "zz" has the same first token.
  const [best, second] = Object.entries(first)
    .sort(([, x], [, y]) => y - x)
    .map(([choice]) => choice);
  t.deepEqual([best, second].sort(), ['zz', '😀']);
  t.true(Math.abs(Object.values(first).reduce((x, y) => x + y, 0) - 1) < 1e-9);
  const reversed = job({ model: 'staged', choices: offered.toReversed() });
  t.deepEqual(probabilitiesOf(reversed, await engine.score(reversed, terms())), first);
  for (const words of [5, 9, 30, 60]) {
    for (const end of [' ', '\n']) {
      const long = job({ ...request, input: `abc${end}`.repeat(words) });
      t.like(await engine.score(long, terms()), { kind: 'scored', inputTokens: 3 * words + 5 });
    }
  }
  t.deepEqual(await engine.prepare(request, terms()), { kind: 'prepared' });
});

test('a choice of a megabyte of symbols is refused at once, and one of joiners is read', async (t) => {
  const modelsDir = await modelsFolder(t);
  await writePackage(modelsDir, {
    ...SMALL,
    files: { ...SMALL.files, 'symbols.json': Buffer.from(JSON.stringify({ '😀': ' z '.repeat(30), '\u200d': '' })) },
  });
  const engine = await startEngine(t, { modelsDir });
  const symbols = '😀'.repeat(1 << 18);
  const request = job({ model: 'staged', choices: ['a', symbols] });
  const began = process.hrtime.bigint();
  t.deepEqual(await engine.score(request, terms()), {
    kind: 'choice_too_long',
    choice: symbols,
    tokens: 96,
    limit: 12,
  });
  // Some 100 ms; reading it whole takes half a minute and a gigabyte.
  t.true(process.hrtime.bigint() - began < 8_000_000_000n);
  const joiners = job({ model: 'staged', choices: ['a', '\u200d'.repeat(1 << 18)] });
  t.like(await engine.score(joiners, terms()), { kind: 'scored' });
  const input = job({ model: 'staged', input: symbols });
  t.like(await engine.score(input, terms()), { kind: 'input_too_long', atLeast: true });
});

test('wrong options are all named', async (t) => {
  const modelsDir = await modelsFolder(t);
  const { options } = SMALL.manifest;
  const stack = { ...options.stack, features: ['one', 'luck', 'about'] };
  await writePackage(modelsDir, {
    ...SMALL,
    manifest: {
      ...SMALL.manifest,
      options: { ...options, best: 1, stack, windows: { ...options.windows, least_tokens: 13 } },
    },
  });
  await writePackage(modelsDir);
  const engine = await startEngine(t, { modelsDir }, 'started');
  await until(() => engine.log.some(({ level }) => level === 'error'));
  t.deepEqual(engine.log.find(({ level }) => level === 'error')?.fields.problems, [
    'options.stack.features has the unknown feature "luck"',
    'options.best must be a number from 2 to 300',
    'options.stack.alpha must be a list of 3 numbers',
    'options.stack.beta must be a list of 3 numbers',
    'options.windows.least_tokens is more than a segment has',
  ]);
});
