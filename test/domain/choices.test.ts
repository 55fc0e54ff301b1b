/** What choices must be. */
import test from 'ava';
import { choicesFault } from '../../src/domain/choices.ts';

const many = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index));

for (const [title, choices] of Object.entries({
  two: ['a', 'b'],
  'as many as there may be': many(300),
  'what an object would have anyway': ['__proto__', 'constructor', 'toString'],
  'white space and digits': [' ', '  ', '\n', '10', '010'],
  'one word composed and decomposed': ['é', 'e\u0301'],
  emoji: ['🟢', '🔴'],
})) {
  test(`fine: ${title}`, (t) => {
    t.is(choicesFault(choices), undefined);
  });
}

for (const [title, choices, message] of [
  ['none', [], 'choices must hold 2 to 300 items, not 0'],
  ['one', ['a'], 'choices must hold 2 to 300 items, not 1'],
  ['too many', many(301), 'choices must hold 2 to 300 items, not 301'],
  ['an empty one', ['a', ''], 'choices[1] is empty'],
  ['one twice', ['a', 'b', 'a'], 'choices[2] repeats choices[0]'],
  ['a lone surrogate', ['a', 'b\ud800'], 'choices[1] is not well-formed text: it holds a lone surrogate'],
] as const) {
  test(`refused: ${title}`, (t) => {
    t.like(choicesFault(choices), { reason: 'INVALID_CHOICES', param: 'choices', message });
  });
}
