/** Twins of real texts are found, whatever is around them; different texts with one signature are none. */
import { readFileSync } from 'node:fs';
import test from 'ava';
import { firstOfEach } from '../../src/learning/near-repeats.ts';

interface Row {
  readonly input: string;
  readonly label: string;
}

const SIGNATURE = `

Kind regards,
Maria Gonzalez, Senior Coordinator, Example Logistics
Tel. +49 30 1234567, this message may contain confidential information.`;

const AROUND: Readonly<Record<string, (text: string) => string>> = {
  greeting: (text) => `Dear team, ${text}`,
  'in capitals': (text) => `URGENT: ${text.toUpperCase()}!`,
  signature: (text) => `${text}${SIGNATURE}`,
  'reply that quotes it': (text) => `Any news on this?\n> ${text}`,
};

const rows = (set: string): readonly Row[] =>
  readFileSync(new URL(`../../bench/eval/sample/${set}.jsonl`, import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Row)
    .filter(({ input }) => input !== undefined)
    .slice(0, 60);

const repeats = (texts: readonly Row[]): number => firstOfEach(texts).filter((first, place) => first !== place).length;

for (const set of ['banking77', 'clinc150', 'metatool']) {
  const texts = rows(set);
  const own = repeats(texts);
  for (const [name, around] of Object.entries(AROUND)) {
    test(`${set}: the twin with another ${name} is found`, (t) => {
      t.true(texts.length > 20);
      const twins = texts.map(({ input, label }) => ({ input: around(input), label }));
      const first = firstOfEach([...texts, ...twins]).slice(texts.length);
      t.true(first.filter((place) => place < texts.length).length >= 0.95 * texts.length);
    });
  }

  test(`${set}: texts that share a signature are no twins for it`, (t) => {
    t.true(own <= 0.1 * texts.length);
    t.true(repeats(texts.map(({ input, label }) => ({ input: input + SIGNATURE, label }))) <= own + 1);
  });
}

test('the same text under two labels stays twice', (t) => {
  const input = 'I want my money back for this order';
  t.deepEqual(
    firstOfEach([
      { input, label: 'yes' },
      { input: 'I do not want my money back for this order', label: 'no' },
      { input: `Hello, ${input}`, label: 'yes' },
    ]),
    [0, 1, 0],
  );
});
