/**
 * The families with the real runtime and real tokenizers: numbers, limits and plain text. Answers depend on the request
 * alone, what is cached for one owner makes nobody else's decision faster, and short decisions pass a long text.
 */
import test from 'ava';
import type { Engine, JobTerms, ScoreJob } from '../../src/engine/engine.ts';
import { fillTemplate } from '../../src/engine/families/nli-cross-encoder.ts';
import { WorkInFlight } from '../../src/engine/processes/work-in-flight.ts';
import { applyTemperature } from '../../src/engine/tempered.ts';
import { ENGINE_CACHE, modelsDir } from '../support/models-dir.ts';
import { random as repeating } from '../support/random.ts';
import { eventually, job, probabilitiesOf, startEngine, terms } from './support/engine.ts';
import { encoderGraph, modelsFolder, TINY, tokenId, writePackage } from './support/packages.ts';
import { NLI } from './support/remote-packages.ts';

test.serial('tokens are counted without special ones, and nothing is cut', async (t) => {
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

test.serial('a long text that is split in pieces gets the tokens of the whole', async (t) => {
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

test.serial('special tokens in a text are plain text', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, TINY) });
  const request = job({ input: '[SEP]', choices: ['[CLS]', '[SEP]', '</s>'] });
  // "[", "s", "##e", "##p", "]" and "which".
  const outcome = await engine.score(request, terms());
  t.like(outcome, { kind: 'scored', inputTokens: 10 });
  t.is(new Set(Object.values(probabilitiesOf(request, outcome))).size, 3);
});

test.serial('a cached choice and a fresh one give the same numbers, and so does a prepared one', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const [fresh, prepared] = [await startEngine(t, { modelsDir }), await startEngine(t, { modelsDir })];
  const request = job({ choices: ['ab', 'bc', 'cd', 'de'] });
  t.deepEqual(await prepared.prepare(request, terms()), { kind: 'prepared' });
  const miss = probabilitiesOf(request, await fresh.score(request, terms()));
  t.deepEqual(probabilitiesOf(request, await fresh.score(request, terms())), miss);
  t.deepEqual(probabilitiesOf(request, await prepared.score(request, terms())), miss);
});

test.serial('the premise mixes the input alone with instruction and input by the weight', async (t) => {
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

test.serial('the cross-encoder scores each choice by its hypothesis', async (t) => {
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

test.serial('what fills a template is plain text', (t) => {
  const values = { choice: "$& {instruction} $' {choice}", instruction: '$1' };
  t.is(fillTemplate('{instruction}: {choice}, {x}.', values), "$1: $& {instruction} $' {choice}, {x}.");
});

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

test.serial('answers among a thousand mixed requests are those of each request alone, bit for bit', async (t) => {
  const modelsDir = await modelsFolder(t);
  const roomy = { manifest: { limits: { input_tokens: 200, candidate_tokens: 12, choices: 300 } } };
  await writePackage(modelsDir, roomy);
  await writePackage(modelsDir, { ...roomy, revision: 'r2', graph: encoderGraph(2) });
  const next = repeating(7);
  const random = (below: number): number => Math.floor(next() * below);
  const word = () => Array.from({ length: 1 + random(5) }, () => LETTERS[random(26)]).join('');
  const requests = Array.from({ length: 150 }, (_, i) => {
    const choices = [...new Set(Array.from({ length: 2 + random(i % 10 === 0 ? 60 : 8) }, word))];
    const input = Array.from({ length: 1 + random(30) }, word).join(' ');
    return job({ revision: `r${1 + random(2)}`, input, instruction: word(), choices: [...choices, 'first', 'second'] });
  });
  const numbers = (request: ScoreJob, outcome: Parameters<typeof probabilitiesOf>[1]) =>
    JSON.stringify(probabilitiesOf(request, outcome));

  const alone = await startEngine(t, { modelsDir });
  const expected: string[] = [];
  for (const request of requests) expected.push(numbers(request, await alone.score(request, terms())));

  const crowd = await startEngine(t, { modelsDir, engines: 2, choiceCacheBytes: 100_000 });
  const sent = Array.from({ length: 1000 }, () => random(requests.length));
  const wrong = await Promise.all(
    sent.map(async (which, i) => {
      const request = requests[which] as ScoreJob;
      const outcome = await crowd.score(request, terms({ tenant: `tenant ${i % 7}`, keyed: i % 3 === 0 }));
      return numbers(request, outcome) === expected[which] ? [] : [which];
    }),
  );
  t.deepEqual(wrong.flat(), []);
});

const owner = (tenant: string): JobTerms => terms({ tenant, keyed: true });

/** How many of a decision's choices were there already. */
async function cached(engine: Engine, decision: ReturnType<typeof job>, whose: JobTerms): Promise<number> {
  const before = engine.stats().choices.cached;
  await engine.score(decision, whose);
  return engine.stats().choices.cached - before;
}

test.serial('200 guesses at the choices of a private catalog find none, however often they are repeated', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, TINY) });
  const secrets = Array.from({ length: 200 }, (_, i) => `ab${i}`);
  await engine.prepare(job({ choices: secrets }), owner('victim'));
  t.is(await cached(engine, job({ choices: secrets }), owner('victim')), 200, 'they are cached for their owner');
  for (const round of ['first', 'second']) {
    for (const [i, secret] of secrets.entries()) {
      const guess = job({ choices: [secret, `${round} ${i}`] });
      const own = round === 'first' ? 0 : 1;
      t.is(await cached(engine, guess, terms({ tenant: '192.0.2.1' })), own, `${secret}, without a key`);
      t.is(await cached(engine, guess, owner('other')), own, `${secret}, with another key`);
    }
  }
});

test.serial('a question of an owner is new to everybody else', async (t) => {
  const engine = await startEngine(t, { modelsDir: modelsDir('umpire-mini'), cacheDir: ENGINE_CACHE });
  const question = job({
    model: 'umpire-mini',
    revision: 'r11',
    choices: ['billing', 'shipping'],
    instruction: 'Which team?',
  });
  const timeOf = async (whose: JobTerms): Promise<number> => {
    const outcome = await engine.score({ ...question, input: 'It broke.' }, whose);
    return outcome.kind === 'scored' ? outcome.timings.infer : Number.NaN;
  };
  t.is(await cached(engine, question, owner('victim')), 0);
  t.is(await cached(engine, question, terms()), 0);
  // In turns, and the least of eight: a machine that is busy makes one of them long, or all of a while.
  const times: (readonly [known: number, unknown: number])[] = [];
  for (let turn = 0; turn < 8; turn++) {
    times.push([await timeOf(owner('victim')), await timeOf(owner(`other ${turn}`))]);
  }
  const known = Math.min(...times.map(([time]) => time));
  const unknown = Math.min(...times.map(([, time]) => time));
  t.true(unknown > known, `${unknown} ms, known to its owner ${known} ms`);
});

/** Marks, which are dropped: a text of no tokens that takes long to read. */
const MARKS = '\u0315\u0300'.repeat(500_000);

for (const where of ['input', 'instruction', 'choices'] as const) {
  test.serial(
    `short decisions pass one whose ${where} is long, in the only engine, and a second long one does not`,
    async (t) => {
      const modelsDir = await modelsFolder(t);
      await writePackage(modelsDir);
      const engine = await startEngine(t, { modelsDir });
      const short = job();
      // Not the same one twice: choices that are known need no reading.
      const [first, second] = ['abc', 'abd'].map((text) => {
        const long = `${text} ${MARKS}`;
        return job(where === 'choices' ? { choices: [long, 'xyz'] } : { [where]: long });
      }) as [ScoreJob, ScoreJob];
      const alone = probabilitiesOf(short, await engine.score(short, terms()));
      const order: string[] = [];
      const decided = async (name: string, request: ScoreJob, tenant: string) => {
        const outcome = await engine.score(request, terms({ tenant }));
        order.push(name);
        return probabilitiesOf(request, outcome);
      };
      const long = [decided('long', first, 'a'), decided('long again', second, 'a')];
      for (let count = 0; count < 3; count++) t.deepEqual(await decided('short', short, 'b'), alone);
      const passed = await Promise.all(long);
      t.deepEqual(order, ['short', 'short', 'short', 'long', 'long again']);
      for (const [index, request] of [first, second].entries())
        t.deepEqual(passed[index], probabilitiesOf(request, await engine.score(request, terms())));
    },
  );
}

test.serial('what passes takes time of its own, and none of what it passes', (t) => {
  const work = new WorkInFlight(1);
  work.add(1, 100, 1_000);
  work.add(2, 10, 1_020);
  t.is(work.remaining(1_020), 90);
  t.is(work.finish(2, 1_032), 12);
  t.is(work.remaining(1_032), 80);
  work.add(3, 10, 1_040);
  t.is(work.finish(3, 1_045), 5);
  t.is(work.finish(1, 1_110), 93);
  work.add(4, 10, 1_120);
  work.add(5, 10, 1_121);
  t.is(work.finish(4, 1_130), 10);
  t.is(work.finish(5, 1_138), 8);
});

const RULE = { bound: 0.5, pull: 3 };
// Of the small vocabulary's words only single letters are read: of five tokens of these inputs none is spelt,
// or three of five.
const READ = { input: 'a b c d e', instruction: 'a', choices: ['c', 'x y', 'z'] };
const SPELT = { ...READ, input: 'abc d e' };

async function scored(engine: Awaited<ReturnType<typeof startEngine>>, question: typeof READ) {
  const outcome = await engine.score(job(question), terms());
  if (outcome.kind !== 'scored') throw new Error(outcome.kind);
  return outcome;
}

test.serial('beyond the bound the probabilities are tempered by how far, and the answer stays', async (t) => {
  const [plainDir, ruledDir] = [await modelsFolder(t), await modelsFolder(t)];
  await writePackage(plainDir);
  await writePackage(ruledDir, { manifest: { unread: RULE } });
  const [plain, ruled] = [await startEngine(t, { modelsDir: plainDir }), await startEngine(t, { modelsDir: ruledDir })];
  const [without, within] = [await scored(plain, READ), await scored(ruled, READ)];
  t.deepEqual(within.probabilities, without.probabilities);
  t.deepEqual(
    [within.unread, without.unread],
    [
      { share: 0, over: false },
      { share: 0, over: false },
    ],
  );

  const [sure, unsure] = [await scored(plain, SPELT), await scored(ruled, SPELT)];
  t.deepEqual(sure.unread, { share: 0.6, over: false });
  t.deepEqual(unsure.unread, { share: 0.6, over: true });
  t.deepEqual(unsure.probabilities, applyTemperature(sure.probabilities, Math.exp(3 * (0.6 - 0.5))));
  t.true(Math.max(...unsure.probabilities) < Math.max(...sure.probabilities));
});

/** Byte pairs, whose pieces are no words. */
const PAIRS = {
  version: '1.0',
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: { type: 'Whitespace' },
  post_processor: null,
  decoder: null,
  model: {
    type: 'BPE',
    vocab: Object.fromEntries(['[UNK]', '[CLS]', '[SEP]', 'a', 'b', 'c'].map((token) => [token, tokenId(token)])),
    merges: [],
    unk_token: '[UNK]',
  },
};

test.serial('a rule needs a tokenizer whose vocabulary has words', async (t) => {
  const modelsDir = await modelsFolder(t, { manifest: { unread: RULE }, tokenizer: PAIRS });
  const engine = await startEngine(t, { modelsDir }, 'started');
  const told = () => engine.log.some(({ fields }) => JSON.stringify(fields).includes('unread needs a tokenizer'));
  await eventually(told);
  t.is(engine.models()[0]?.status, 'unavailable');
});
