/** What a survey makes of answers: how long texts fare, and which limits follow. */
import test from 'ava';
import { laidOver } from '../../../src/engine/package-tools/pack.ts';
import { limitsOf } from '../../../src/engine/package-tools/survey/limits.ts';
import { type LongAnswer, tryLongTexts } from '../../../src/engine/package-tools/survey/long-texts.ts';

/** A reader of so many words that refuses or cuts the others; its numbers are how often it reads each saying. */
function readerOf(limit: number, tooLong: 'refuses' | 'cuts', says?: number) {
  const lengths: number[] = [];
  const ask = async (text: string): Promise<LongAnswer> => {
    const words = text.split(' ');
    lengths.push(words.length);
    if (words.length > limit && tooLong === 'refuses') return { kind: 'refused', limit: says };
    const read = words.slice(0, limit);
    return {
      kind: 'numbers',
      numbers: ['alpha', 'omega'].map((saying) => read.filter((word) => word === saying).length / read.length),
    };
  };
  return { lengths, ask };
}

const TOLERANCE = 1e-3;

test('a refusal is found, with the limit that the server says, or about the longest that it takes', async (t) => {
  const said = readerOf(512, 'refuses', 512);
  t.deepEqual(await tryLongTexts(said.ask, { known: undefined, tolerance: TOLERANCE }), {
    kind: 'refused',
    accepted: 512,
    limit: 512,
  });
  const unsaid = await tryLongTexts(readerOf(700, 'refuses').ask, { known: undefined, tolerance: TOLERANCE });
  t.deepEqual(unsaid, { kind: 'refused', accepted: 640, limit: undefined });
  t.like(await tryLongTexts(readerOf(3, 'refuses').ask, { known: undefined, tolerance: TOLERANCE }), { accepted: 2 });
});

test('a cut is found wherever it is, also where it is in the second half at first', async (t) => {
  for (const limit of [5, 100, 512, 700, 8000]) {
    const { kind } = await tryLongTexts(readerOf(limit, 'cuts').ask, { known: undefined, tolerance: TOLERANCE });
    t.is(kind, 'cut', `${limit}`);
  }
});

test('a server that says its limit is asked little, and one that reads everything only so much', async (t) => {
  const known = readerOf(512, 'cuts');
  t.is((await tryLongTexts(known.ask, { known: 512, tolerance: TOLERANCE })).kind, 'cut');
  t.deepEqual(known.lengths, [1024, 1024]);
  const all = readerOf(Number.POSITIVE_INFINITY, 'cuts');
  t.deepEqual(await tryLongTexts(all.ask, { known: undefined, tolerance: TOLERANCE }), {
    kind: 'read',
    words: 16_384,
    slow: false,
  });
  t.is(Math.max(...all.lengths), 16_384);
});

test('a server that takes too long over a text is not asked for longer ones', async (t) => {
  const reader = readerOf(Number.POSITIVE_INFINITY, 'cuts');
  const ask = async (text: string): Promise<LongAnswer> =>
    text.length > 10_000 ? { kind: 'slow' } : await reader.ask(text);
  t.deepEqual(await tryLongTexts(ask, { known: undefined, tolerance: TOLERANCE }), {
    kind: 'read',
    words: 2048,
    slow: true,
  });
});

const REFUSED = { kind: 'refused', accepted: 0, limit: 512 } as const;
const COUNTING = { hasTokenizer: true, shortlist: undefined };

test('what shares the tokens of a request decides the limits', (t) => {
  const of = (reads: 'text' | 'pair' | 'all', cap?: number) =>
    limitsOf({ longTexts: REFUSED, maxTokens: undefined, reads, cap }, {}, { ...COUNTING, hasTokenizer: false });
  t.like(of('text'), { limits: { inputTokens: 496, candidateTokens: 96, choices: 300 }, cuts: 'refuses' });
  t.like(of('pair'), { limits: { inputTokens: 400, candidateTokens: 96, choices: 300 } });
  // Fewer choices at a time rather than short ones.
  t.like(of('all', 26), { limits: { inputTokens: 251, candidateTokens: 35, choices: 7 }, cap: 7 });
  const shortlist = { inputTokens: 100, candidateTokens: 50, choices: 120 };
  const survey = { longTexts: REFUSED, maxTokens: undefined, reads: 'all', cap: 26 } as const;
  t.like(limitsOf(survey, { candidateTokens: 10 }, { hasTokenizer: false, shortlist }), {
    limits: { inputTokens: 236, candidateTokens: 10, choices: 120 },
    cap: 26,
  });
});

test('what the operator says goes before what was found', (t) => {
  const survey = { longTexts: REFUSED, maxTokens: 300, reads: 'pair', cap: undefined } as const;
  t.deepEqual(limitsOf(survey, { inputTokens: 7, candidateTokens: 8, choices: 9 }, COUNTING).limits, {
    inputTokens: 7,
    candidateTokens: 8,
    choices: 9,
  });
});

test('a server that cuts needs a tokenizer, and limits where it says none', (t) => {
  const cut = { longTexts: { kind: 'cut', words: 1024 }, reads: 'pair', cap: undefined } as const;
  const known = { ...cut, maxTokens: 512 };
  t.throws(() => limitsOf(known, {}, { ...COUNTING, hasTokenizer: false }), { message: /--tokenizer FILE is needed/ });
  t.like(limitsOf(known, {}, COUNTING), { cuts: 'silently', limits: { inputTokens: 400 } });
  const unknown = { ...cut, maxTokens: undefined };
  t.throws(() => limitsOf(unknown, {}, COUNTING), { message: /--input-tokens N and --candidate-tokens N are needed/ });
  t.like(limitsOf(unknown, { inputTokens: 400, candidateTokens: 64 }, COUNTING), { cuts: 'silently' });
});

test('objects are laid over one another field by field, and nothing else is', (t) => {
  const under = { a: { b: 1, c: [1, 2] }, d: 1 };
  t.deepEqual(laidOver(under, { a: { c: [3] }, d: { e: 2 } }), { a: { b: 1, c: [3] }, d: { e: 2 } });
  t.deepEqual(laidOver({}, JSON.parse('{"__proto__": {"x": 1}}')) as object, JSON.parse('{"__proto__": {"x": 1}}'));
  t.false('x' in {});
});
