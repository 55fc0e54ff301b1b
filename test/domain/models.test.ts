import test from 'ava';
import { DomainError } from '../../src/domain/errors.ts';
import { defaultRevisions, findModel, qualifiedName, unknownModel, usableModel } from '../../src/domain/models.ts';
import { SCRIPTED_MODELS } from '../support/scripted-engine.ts';

const reasonOf = (name: string): string => {
  try {
    return qualifiedName(usableModel(SCRIPTED_MODELS, name));
  } catch (error) {
    return error instanceof DomainError ? `${error.reason} ${error.param} ${error.retryAfter}` : 'another error';
  }
};

const CASES: Readonly<Record<string, string>> = {
  'minilm-l6': 'minilm-l6@r1',
  'minilm-l6@r1': 'minilm-l6@r1',
  'minilm-l6@r2': 'minilm-l6@r2',
  'minilm-l6@r3': 'UNKNOWN_MODEL model undefined',
  'minilm-l6@': 'UNKNOWN_MODEL model undefined',
  '@r1': 'UNKNOWN_MODEL model undefined',
  r1: 'UNKNOWN_MODEL model undefined',
  'minilm-l6@r1@r1': 'UNKNOWN_MODEL model undefined',
  '': 'UNKNOWN_MODEL model undefined',
  constructor: 'UNKNOWN_MODEL model undefined',
  off: 'MODEL_DISABLED model undefined',
  'off@r1': 'MODEL_DISABLED model undefined',
  gone: 'MODEL_UNAVAILABLE model 2',
};

for (const [name, expected] of Object.entries(CASES))
  test(`a decision that names '${name}'`, (t) => t.is(reasonOf(name), expected));
test('a decision that names __proto__', (t) => t.is(reasonOf('__proto__'), 'UNKNOWN_MODEL model undefined'));

test('the list has each model once', (t) => {
  t.deepEqual(defaultRevisions(SCRIPTED_MODELS).map(qualifiedName), ['gone@r1', 'minilm-l6@r1', 'off@r1']);
});

test('a new list of revisions is seen at once', (t) => {
  const [gone] = SCRIPTED_MODELS;
  t.is(findModel([], 'gone'), undefined);
  t.is(findModel([...SCRIPTED_MODELS], 'gone'), gone);
});

test('a message repeats a name only if it could be one', (t) => {
  t.regex(unknownModel('gpt-12@r1').message, /'gpt-12@r1'/);
  for (const name of ['<script>', 'a b', 'x'.repeat(65), 'a@b@c', '-a', 'A', 'a@', '@b', 'a\n'])
    t.false(unknownModel(name).message.includes(name), name);
});

test('a name of a kind that is not taken says so, and names what would be', (t) => {
  const fault = unknownModel('umpire-mini@r5', 'a catalog names a model without a revision');
  t.is(fault.reason, 'UNKNOWN_MODEL');
  t.is(fault.message, "a catalog names a model without a revision: 'umpire-mini'");
});

test('a revision that is not served is refused with those that are, a few of many', (t) => {
  const said = (name: string, models = SCRIPTED_MODELS): string =>
    t.throws(() => usableModel(models, name), { instanceOf: DomainError })?.message ?? '';
  t.is(said('minilm-l6@r3'), "model 'minilm-l6@r3' is not served; served here: minilm-l6@r1, minilm-l6@r2");
  t.is(said('minilm-l7'), "model 'minilm-l7' is not served; served here: minilm-l6");
  const [first] = SCRIPTED_MODELS;
  if (first === undefined) return t.fail();
  const many = Array.from({ length: 7 }, (_, index) => ({ ...first, id: 'many', revision: `r${index}` }));
  t.is(
    said('many@r9', many),
    "model 'many@r9' is not served; served here: many@r0, many@r1, many@r2, many@r3, many@r4 and others",
  );
});
