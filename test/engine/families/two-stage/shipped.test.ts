/**
 * The shipped two-stage packages against the family in Python: how they read texts, lay out packs and decide. The cases
 * of each are written by `training/two_stage/golden.py`, which also holds the fp32 graphs against PyTorch and packs
 * that are split against whole ones.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { plainText, readSymbols, wordsOf } from '../../../../src/engine/families/two-stage/finder.ts';
import { readTwoStageOptions } from '../../../../src/engine/families/two-stage/options.ts';
import { packFeeds } from '../../../../src/engine/families/two-stage/stages.ts';
import { readOptions } from '../../../../src/engine/packages/manifest.ts';
import { loadTokenizer } from '../../../../src/engine/text/tokenizer.ts';
import { job, probabilitiesOf, shippedModels, startShipped, terms } from '../../support/engine.ts';

interface ReadText {
  readonly text: string;
  readonly read: string;
  readonly ids: readonly number[];
}
interface PackCase {
  readonly input: string;
  readonly instruction: string;
  readonly choices: readonly string[];
  readonly input_ids: readonly number[];
  readonly position_ids: readonly number[];
  readonly block_ids: readonly number[];
  readonly markers: readonly number[];
}
interface DecisionCase {
  readonly input: string;
  readonly instruction: string;
  readonly choices: readonly string[];
  readonly tokens: number;
  readonly probabilities: readonly number[];
}

interface Package {
  readonly id: string;
  readonly revision: string;
  readonly family: string;
  readonly options: unknown;
}

const json = <T>(...path: readonly string[]): T => JSON.parse(readFileSync(join(...path), 'utf8'));
const golden = <T>(id: string, name: string): T =>
  JSON.parse(readFileSync(new URL(`../../../golden/${id}/${name}.json`, import.meta.url), 'utf8'));

const packages = readdirSync(shippedModels).flatMap((id) =>
  readdirSync(join(shippedModels, id))
    .map((revision) => json<Package>(shippedModels, id, revision, 'model.json'))
    .filter(({ family }) => family === 'two-stage'),
);

const engine = await startShipped(...packages.map(({ id }) => id));

const readers = await Promise.all(
  packages.map(({ id, revision }) => loadTokenizer(join(shippedModels, id, revision, 'tokenizer.json'))),
);

test.after.always(() => engine.close());

test('there are packages to hold to their cases', (t) => {
  t.true(packages.length > 0);
});

for (const [index, { id, revision, options }] of packages.entries()) {
  const folder = join(shippedModels, id, revision);
  const { special } = readOptions(options, readTwoStageOptions);
  const symbols = readSymbols(json(folder, 'symbols.json'));
  const plainIds = (text: string) => readers[index]?.ids(plainText(text, symbols)) ?? [];
  const choiceIds = (choice: string) => {
    const ids = plainIds(wordsOf(choice));
    return ids.length > 0 ? ids : [special.unk];
  };

  const texts = golden<{ plain: readonly ReadText[]; choice: readonly ReadText[] }>(id, 'texts');
  for (const { text, read, ids } of texts.plain) {
    test(`${id} reads a text as in Python: ${JSON.stringify(text)}`, (t) => {
      t.is(plainText(text, symbols), read);
      t.deepEqual(plainIds(text), ids);
    });
  }
  for (const { text, read, ids } of texts.choice) {
    test(`${id} reads a choice as in Python: ${JSON.stringify(text)}`, (t) => {
      t.is(plainText(wordsOf(text), symbols), read);
      t.deepEqual(choiceIds(text), ids);
    });
  }

  for (const pack of golden<readonly PackCase[]>(id, 'packs')) {
    test(`${id} lays out a pack as in Python: ${pack.instruction} ${pack.input}`, (t) => {
      const feeds = packFeeds(plainIds(pack.instruction), plainIds(pack.input), pack.choices.map(choiceIds), special);
      for (const name of ['input_ids', 'position_ids', 'block_ids', 'markers'] as const) {
        t.deepEqual(Array.from(feeds[name].data, Number), pack[name], name);
      }
    });
  }

  const cases = golden<readonly DecisionCase[]>(id, 'decisions');
  for (const [place, { probabilities: expected, tokens, ...request }] of cases.entries()) {
    const name = `${request.instruction.slice(0, 60)} (case ${place}, ${request.input.length} characters)`;
    test(`${id} decides as in Python: ${name}`, async (t) => {
      const asked = job({ ...request, model: id, revision });
      const outcome = await engine.score(asked, terms({ within: 120_000 }));
      const probabilities = probabilitiesOf(asked, outcome);
      t.like(outcome, { kind: 'scored', inputTokens: tokens });
      // On the machine that wrote the cases they agree to six digits; other CPUs have other int8 kernels.
      for (const [i, choice] of request.choices.entries()) {
        const difference = Math.abs((probabilities[choice] ?? 1) - (expected[i] ?? 0));
        t.true(difference < 0.01, `${choice}: ${probabilities[choice]} instead of ${expected[i]}`);
      }
    });
  }
}

async function decided(request: Pick<DecisionCase, 'input' | 'instruction' | 'choices'>, model = 'umpire-mini') {
  const { revision = '' } = packages.find(({ id }) => id === model) ?? {};
  const asked = job({ ...request, model, revision });
  return probabilitiesOf(asked, await engine.score(asked, terms({ within: 120_000 })));
}

const PLAIN = ['play music', 'set alarm', 'turn on lights', 'weather forecast'];
const spellings: Readonly<Record<string, (choice: string) => string>> = {
  snake_case: (choice) => choice.replaceAll(' ', '_'),
  camelCase: (choice) => choice.replace(/ ([a-z])/g, (_, letter: string) => letter.toUpperCase()),
  PascalCase: (choice) => ` ${choice}`.replace(/ ([a-z])/g, (_, letter: string) => letter.toUpperCase()),
  'kebab-case': (choice) => choice.replaceAll(' ', '-'),
  SHOUTING: (choice) => choice.toUpperCase(),
  SCREAMING_SNAKE: (choice) => choice.toUpperCase().replaceAll(' ', '_'),
};
for (const [name, spell] of Object.entries(spellings)) {
  test(`choices in ${name} decide like plain ones`, async (t) => {
    const request = { input: 'Put some jazz on in the kitchen', instruction: 'What does the user want?' };
    const first = await decided({ ...request, choices: PLAIN });
    const other = await decided({ ...request, choices: PLAIN.map(spell) });
    for (const choice of PLAIN) {
      const difference = (first[choice] ?? 1) - (other[spell(choice)] ?? 0);
      t.true(Math.abs(difference) < 0.01, choice);
    }
  });
}

test('a text of which nothing can be seen is decided evenly by every package, and one of a mark is not', async (t) => {
  const even = async (input: string, model: string) => {
    const all = Object.values(
      await decided({ input, instruction: 'Safe?', choices: ['safe', 'dangerous', 'x'] }, model),
    );
    return Math.max(...all) - Math.min(...all) < 1e-6;
  };
  for (const { id } of packages) {
    for (const blank of [
      ' \n\u00a0',
      '\u200b',
      ' \u2060\u00ad',
      '\u200d\ufe0f',
      '\u3164\u115f',
      '\u2800',
      '\u0000',
      '\u{e0041}',
    ])
      t.true(await even(blank, id), `${id} ${JSON.stringify(blank)}`);
    for (const seen of ['.', '\u200b.', '🙂\ufe0f', 'а']) t.false(await even(seen, id), `${id} ${seen}`);
  }
});

test('emoji as choices are told apart, and the answer is the right one', async (t) => {
  const probabilities = await decided({
    input: 'I am so happy, this is the best day of my life!',
    instruction: 'Which emoji fits?',
    choices: ['😀', '😢'],
  });
  t.true((probabilities['😀'] ?? 0) > 0.5);
});

test('a text that it has no words for is hardly surer than an even guess', async (t) => {
  // "I was charged twice, please return my money", in Khmer.
  const probabilities = await decided({
    input: 'ខ្ញុំត្រូវបានគិតប្រាក់ពីរដង សូមប្រគល់ប្រាក់របស់ខ្ញុំវិញ',
    instruction: 'Which team should handle this?',
    choices: ['billing', 'shipping', 'technical support', 'sales'],
  });
  t.true(Math.max(...Object.values(probabilities)) < 0.3);
});
