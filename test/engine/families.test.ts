/** The families with the real runtime and real tokenizers: numbers, limits and plain text. */
import test from 'ava';
import { fillTemplate } from '../../src/engine/families/nli-cross-encoder.ts';
import { job, probabilitiesOf, startEngine, terms } from './support/engine.ts';
import { modelsFolder, TINY, writePackage } from './support/packages.ts';
import { NLI } from './support/remote-packages.ts';

test('tokens are counted without special ones, and nothing is cut', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, TINY) });
  const score = (input: string, choices = ['a', 'b'], instruction = 'abcd') =>
    engine.score(job({ input, instruction, choices }), terms());

  t.like(await score('a'.repeat(36)), { kind: 'scored', inputTokens: 40 });
  t.like(await score('a'.repeat(37)), { kind: 'input_too_long', tokens: 41, limit: 40, atLeast: false });
  t.like(await score('a', ['b', 'c'], 'a b '.repeat(20)), { kind: 'input_too_long', tokens: 41, atLeast: false });
  t.like(await score('a '.repeat(400)), { kind: 'input_too_long', tokens: 320, limit: 40, atLeast: true });
  t.like(await score('a '.repeat(1 << 19)), { kind: 'input_too_long', tokens: 320, atLeast: true });
  t.like(await score('!'.repeat(1 << 20)), { kind: 'input_too_long', atLeast: true });
  t.like(await score(`a${' '.repeat(1 << 17)}b`), { kind: 'scored', inputTokens: 6 });
  // One word of any length is one unknown token.
  t.like(await score('a'.repeat(1 << 16)), { kind: 'scored', inputTokens: 5 });
  t.like(await score('a', ['a'.repeat(12), 'b']), { kind: 'scored' });
  const long = 'a'.repeat(13);
  t.deepEqual(await score('a', ['b', long]), { kind: 'choice_too_long', choice: long, tokens: 13, limit: 12 });
  t.deepEqual(await engine.prepare(job({ choices: ['b', long] }), terms()), {
    kind: 'choice_too_long',
    choice: long,
    tokens: 13,
    limit: 12,
  });
});

test('a long text that is split in pieces gets the tokens of the whole', async (t) => {
  const modelsDir = await modelsFolder(t, {
    manifest: { limits: { input_tokens: 30_000, candidate_tokens: 12, choices: 2 } },
  });
  const engine = await startEngine(t, { modelsDir });
  for (const text of ['abc de f '.repeat(3000), `${'x'.repeat(20_000)} ab`, 'ab\n'.repeat(7000), '🙂'.repeat(10_000)]) {
    const words = text.split(/\s+/).filter((word) => word !== '');
    const expected = words.reduce((sum, word) => sum + (word.length > 100 ? 1 : word.length), 0);
    t.like(await engine.score(job({ input: text, instruction: 'a' }), terms()), { inputTokens: expected + 1 });
  }
});

test('special tokens in a text are plain text', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, TINY) });
  const request = job({ input: '[SEP]', choices: ['[CLS]', '[SEP]', '</s>'] });
  // "[", "s", "##e", "##p", "]" and "which".
  const outcome = await engine.score(request, terms());
  t.like(outcome, { kind: 'scored', inputTokens: 10 });
  t.is(new Set(Object.values(probabilitiesOf(request, outcome))).size, 3);
});

test('a cached choice and a fresh one give the same numbers, and so does a prepared one', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const [fresh, prepared] = [await startEngine(t, { modelsDir }), await startEngine(t, { modelsDir })];
  const request = job({ choices: ['ab', 'bc', 'cd', 'de'] });
  t.deepEqual(await prepared.prepare(request, terms()), { kind: 'prepared' });
  const miss = probabilitiesOf(request, await fresh.score(request, terms()));
  t.deepEqual(probabilitiesOf(request, await fresh.score(request, terms())), miss);
  t.deepEqual(probabilitiesOf(request, await prepared.score(request, terms())), miss);
});

test('the premise mixes the input alone with instruction and input by the weight', async (t) => {
  const modelsDir = await modelsFolder(t);
  for (const [revision, joint_weight] of [
    ['alone', 0],
    ['mixed', 0.5],
    ['joint', 1],
  ] as const) {
    await writePackage(modelsDir, { revision, options: { joint_weight } });
  }
  const engine = await startEngine(t, { modelsDir });
  const numbers = async (revision: string, instruction: string): Promise<string> => {
    const request = job({ revision, instruction });
    return JSON.stringify(probabilitiesOf(request, await engine.score(request, terms())));
  };
  t.is(await numbers('alone', 'xyz'), await numbers('alone', 'qqq'));
  t.not(await numbers('mixed', 'xyz'), await numbers('mixed', 'qqq'));
  t.not(await numbers('mixed', 'xyz'), await numbers('joint', 'xyz'));
  t.not(await numbers('mixed', 'xyz'), await numbers('alone', 'xyz'));
});

test('the cross-encoder scores each choice by its hypothesis', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, { id: 'nli', ...NLI }) });
  const choices = ['$& z', 'zz', '{choice}', '{}', '$1', 'zzzz', '{0}'];
  const request = job({ model: 'nli', choices });
  const first = probabilitiesOf(request, await engine.score(request, terms()));
  t.is(Object.entries(first).sort(([, a], [, b]) => b - a)[0]?.[0], 'zzzz');
  // A choice's odds against another do not depend on what else is offered: each pair is a run of its own.
  const pair = job({ model: 'nli', choices: ['zz', 'zzzz'] });
  const alone = probabilitiesOf(pair, await engine.score(pair, terms()));
  t.true(Math.abs((first.zz ?? 0) / (first.zzzz ?? 1) - (alone.zz ?? 0) / (alone.zzzz ?? 1)) < 1e-12);
  t.like(await engine.score(job({ model: 'nli', choices: ['a', 'b'.repeat(13)] }), terms()), {
    kind: 'choice_too_long',
  });
  t.deepEqual(await engine.prepare(job({ model: 'nli', choices: ['a', 'b'] }), terms()), { kind: 'prepared' });
});

test('what fills a template is plain text', (t) => {
  const values = { choice: "$& {instruction} $' {choice}", instruction: '$1' };
  t.is(fillTemplate('{instruction}: {choice}, {x}.', values), "$1: $& {instruction} $' {choice}, {x}.");
});
