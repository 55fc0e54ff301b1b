/** A text that the model has no words for is decided with less confidence, by the package's rule, and that is told. */
import test from 'ava';
import { applyTemperature } from '../../src/engine/tempered.ts';
import { eventually, job, startEngine, terms } from './support/engine.ts';
import { modelsFolder, tokenId, writePackage } from './support/packages.ts';

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

test('beyond the bound the probabilities are tempered by how far, and the answer stays', async (t) => {
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

test('a rule needs a tokenizer whose vocabulary has words', async (t) => {
  const modelsDir = await modelsFolder(t, { manifest: { unread: RULE }, tokenizer: PAIRS });
  const engine = await startEngine(t, { modelsDir }, 'started');
  const told = () => engine.log.some(({ fields }) => JSON.stringify(fields).includes('unread needs a tokenizer'));
  await eventually(told);
  t.is(engine.models()[0]?.status, 'unavailable');
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
