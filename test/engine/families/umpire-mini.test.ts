/**
 * What the shipped `umpire-mini` promises of its decisions; `two-stage/shipped.test.ts` holds it to the
 * family in Python.
 */
import test from 'ava';
import { createEngine } from '../../../src/engine/create-engine.ts';
import { modelsDir } from '../../support/models-dir.ts';
import { eventually, job, probabilitiesOf, terms } from '../support/engine.ts';

const REVISION = 'r10';

const silent = () => {};
const engine = await createEngine({
  modelsDir: modelsDir('umpire-mini'),
  engines: 1,
  niceness: 0,
  logger: { debug: silent, info: silent, warn: silent, error: silent },
});
await eventually(() => engine.models().some(({ id, status }) => id === 'umpire-mini' && status === 'ready'), 60_000);

test.after.always(() => engine.close());

interface Request {
  readonly input: string;
  readonly instruction: string;
  readonly choices: readonly string[];
}

async function decide(request: Request) {
  const asked = job({ ...request, model: 'umpire-mini', revision: REVISION });
  const outcome = await engine.score(asked, terms());
  return { outcome, probabilities: probabilitiesOf(asked, outcome) };
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
    const first = await decide({ ...request, choices: PLAIN });
    const other = await decide({ ...request, choices: PLAIN.map(spell) });
    for (const choice of PLAIN) {
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

test('a text that it has no words for is hardly surer than an even guess', async (t) => {
  // "I was charged twice, please return my money", in Khmer.
  const { probabilities } = await decide({
    input: 'ខ្ញុំត្រូវបានគិតប្រាក់ពីរដង សូមប្រគល់ប្រាក់របស់ខ្ញុំវិញ',
    instruction: 'Which team should handle this?',
    choices: ['billing', 'shipping', 'technical support', 'sales'],
  });
  t.true(Math.max(...Object.values(probabilities)) < 0.3);
});

test('requests in any order of choices give the same bits', async (t) => {
  const choices = Array.from({ length: 50 }, (_, i) => `topic number ${i}`);
  const request = { input: 'Tell me about number 17', instruction: 'Which topic is it?' };
  const first = await decide({ ...request, choices });
  const other = await decide({ ...request, choices: choices.toReversed() });
  t.deepEqual(first.probabilities, other.probabilities);
});
