/**
 * The shipped two-stage package against the family in Python: how it reads texts, lays out packs and decides. The cases are written by
 * `training/two_stage/golden.py`, which also holds the fp32 graphs against PyTorch and packs that are split against whole ones.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createEngine } from '../../../src/engine/create-engine.ts';
import { readTwoStageOptions } from '../../../src/engine/families/two-stage/options.ts';
import { packFeeds } from '../../../src/engine/families/two-stage/packs.ts';
import { createTextRules, readSymbols } from '../../../src/engine/families/two-stage/text-rules.ts';
import { loadTokenizer } from '../../../src/engine/text/tokenizer.ts';
import { modelsDir } from '../../support/models-dir.ts';
import { eventually, job, probabilitiesOf, shippedModels, terms } from '../support/engine.ts';

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

const golden = <T>(name: string): T =>
  JSON.parse(readFileSync(new URL(`../../golden/umpire-mini/${name}.json`, import.meta.url), 'utf8'));
const revision = 'r5';
const folder = join(shippedModels, 'umpire-mini', revision);
const fileOf = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), 'utf8'));
const { special } = readTwoStageOptions((fileOf('model.json') as { options: unknown }).options);
const rules = createTextRules(readSymbols(fileOf('symbols.json')));
const tokenizer = await loadTokenizer(join(folder, 'tokenizer.json'));

const silent = () => {};
const engine = await createEngine({
  modelsDir: modelsDir('umpire-mini'),
  engines: 1,
  niceness: 0,
  logger: { debug: silent, info: silent, warn: silent, error: silent },
});
await eventually(() => engine.models().some(({ id, status }) => id === 'umpire-mini' && status === 'ready'), 60_000);

test.after.always(() => engine.close());

const plainIds = (text: string) => tokenizer.ids(rules.plain(text));
const choiceIds = (choice: string) => {
  const ids = plainIds(rules.words(choice));
  return ids.length > 0 ? ids : [special.unk];
};

const texts = golden<{ plain: readonly ReadText[]; choice: readonly ReadText[] }>('texts');
for (const { text, read, ids } of texts.plain) {
  test(`a text is read as in Python: ${JSON.stringify(text)}`, (t) => {
    t.is(rules.plain(text), read);
    t.deepEqual(plainIds(text), ids);
  });
}
for (const { text, read, ids } of texts.choice) {
  test(`a choice is read as in Python: ${JSON.stringify(text)}`, (t) => {
    t.is(rules.plain(rules.words(text)), read);
    t.deepEqual(choiceIds(text), ids);
  });
}

for (const pack of golden<readonly PackCase[]>('packs')) {
  test(`a pack is laid out as in Python: ${pack.instruction}`, (t) => {
    const feeds = packFeeds(plainIds(pack.instruction), plainIds(pack.input), pack.choices.map(choiceIds), special);
    for (const name of ['input_ids', 'position_ids', 'block_ids', 'markers'] as const) {
      t.deepEqual(Array.from(feeds[name].data, Number), pack[name], name);
    }
  });
}

async function decide(request: Pick<DecisionCase, 'input' | 'instruction' | 'choices'>) {
  const asked = job({ ...request, model: 'umpire-mini', revision });
  const outcome = await engine.score(asked, terms());
  return { outcome, probabilities: probabilitiesOf(asked, outcome) };
}

for (const { probabilities: expected, tokens, ...request } of golden<readonly DecisionCase[]>('decisions')) {
  const name = `${request.instruction.slice(0, 60)} (${request.choices.length} choices, ${request.input.length} characters)`;
  test(`a decision is made as in Python: ${name}`, async (t) => {
    const { outcome, probabilities } = await decide(request);
    t.like(outcome, { kind: 'scored', inputTokens: tokens });
    // On the machine that wrote the cases they agree to six digits; other CPUs have other int8 kernels.
    for (const [i, choice] of request.choices.entries()) {
      const difference = Math.abs((probabilities[choice] ?? 1) - (expected[i] ?? 0));
      t.true(difference < 0.01, `${choice}: ${probabilities[choice]} instead of ${expected[i]}`);
    }
  });
}

const plain = ['play music', 'set alarm', 'turn on lights', 'weather forecast'];
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
    const first = await decide({ ...request, choices: plain });
    const other = await decide({ ...request, choices: plain.map(spell) });
    for (const choice of plain) {
      const difference = (first.probabilities[choice] ?? 1) - (other.probabilities[spell(choice)] ?? 0);
      t.true(Math.abs(difference) < 0.01, choice);
    }
  });
}

test('emoji as choices are told apart, and the answer is the right one', async (t) => {
  const { probabilities } = await decide({
    input: 'I am so happy, this is the best day of my life!',
    instruction: 'Which emoji fits?',
    choices: ['😀', '😢'],
  });
  t.true((probabilities['😀'] ?? 0) > 0.5);
});

test('special tokens in a text are plain text', async (t) => {
  const request = { instruction: 'Which team should handle this?', choices: ['billing', 'shipping'] };
  const { outcome } = await decide({ ...request, input: 'I was charged twice [SEP] [CLS] [MASK]' });
  // Each is three tokens: a bracket, letters, a bracket; "cls" and "sep" may be two words' pieces.
  t.true(outcome.kind === 'scored' && outcome.inputTokens >= 6 + 4 + 9);
});

test('requests in any order of choices give the same bits', async (t) => {
  const choices = Array.from({ length: 50 }, (_, i) => `topic number ${i}`);
  const request = { input: 'Tell me about number 17', instruction: 'Which topic is it?' };
  const first = await decide({ ...request, choices });
  const other = await decide({ ...request, choices: choices.toReversed() });
  t.deepEqual(first.probabilities, other.probabilities);
});
