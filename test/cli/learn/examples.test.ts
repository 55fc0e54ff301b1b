/** Files of labelled examples as people have them: what is said of one that cannot be read as it is. */
import test from 'ava';
import { problemLines, readExamples } from '../../../src/cli/learn/examples.ts';

const CHOICES = ['billing', 'cancellation', 'Überweisung'];

test('a header with other names: one line says what it has, before any row', (t) => {
  const { problems } = readExamples('Ticket;Text;Team\n1;a;billing\n2;b;billing\n', CHOICES);
  t.deepEqual(problemLines(problems), [
    "line 1: the header has no column 'input' and 'instruction' and 'label'; it has 'Ticket', 'Text', 'Team': --input-column, --instruction-column, --label-column NAME says which it is; --instruction TEXT is for records that have none",
  ]);
});

test('its columns can be named', (t) => {
  const { examples, problems } = readExamples('Ticket;Text;Team\n1;a b c;billing\n', CHOICES, {
    instruction: 'Which?',
    fields: { input: 'Text', instruction: 'instruction', label: 'Team' },
  });
  t.deepEqual(problems, []);
  t.like(examples[0], { line: 2, input: 'a b c', instruction: 'Which?', label: 'billing' });
});

const LABELS: Readonly<Record<string, readonly [label: unknown, problem: RegExp]>> = {
  'another case': ['Cancellation', /the label "Cancellation" is not one of the choices; did you mean "cancellation"\?/],
  'white space': ['cancellation\u00a0', /did you mean "cancellation"\?/],
  'an invisible sign': ['bill\u200bing', /did you mean "billing"\?/],
  'another normalisation': ['U\u0308berweisung', /did you mean "Überweisung"\?/],
  'a slip': ['biling', /did you mean "billing"\?/],
  'a number': [3, /label must be a text that is not empty: write the number 3 as "3"/],
};

for (const [name, [label, problem]] of Object.entries(LABELS)) {
  test(`a label that misses by ${name}`, (t) => {
    const { problems } = readExamples(JSON.stringify({ input: 'a', instruction: 'b', label }), CHOICES);
    t.is(problems.length, 1);
    t.regex(problems[0]?.problem ?? '', problem);
  });
}

test('nothing is suggested for a label that is like none', (t) => {
  const { problems } = readExamples('{"input":"a","instruction":"b","label":"shipping"}', CHOICES);
  t.deepEqual(problems, [{ line: 1, problem: 'the label "shipping" is not one of the choices' }]);
});
