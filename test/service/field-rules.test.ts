import test from 'ava';
import { optionalText, requiredText } from '../../src/service/field-rules.ts';

const has = (...names: readonly string[]) => ({ has: (name: string) => names.includes(name) });
const valueFault = (rule: { value?: ((value: never) => unknown) | undefined }, value: string): unknown =>
  rule.value?.(value as never);

test('a required text must be there', (t) => {
  const rule = requiredText('model');
  t.like(rule.presence?.(has()), { reason: 'MISSING_FIELD', param: 'model' });
  t.is(rule.presence?.(has('model')), undefined);
});

test('an optional one need not', (t) => {
  t.is(optionalText('catalog').presence, undefined);
});

for (const [what, text, fault] of [
  ['empty', '', true],
  ['a space', ' ', false],
  ['a pair of surrogates', '\ud83d\ude00', false],
  ['a high surrogate alone', 'a\ud83d', true],
  ['a low surrogate alone', '\ude00a', true],
  ['a pair the wrong way round', '\ude00\ud83d', true],
  ['NUL', '\0', false],
] as const) {
  test(`a text that is ${what}`, (t) => {
    for (const rule of [requiredText('input'), optionalText('input')]) {
      if (fault) t.like(valueFault(rule, text), { reason: 'INVALID_VALUE', param: 'input' });
      else t.is(valueFault(rule, text), undefined);
    }
  });
}
