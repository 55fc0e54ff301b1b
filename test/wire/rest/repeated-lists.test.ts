import test from 'ava';
import fc from 'fast-check';
import { DomainError } from '../../../src/domain/errors.ts';
import { createBodyParser } from '../../../src/wire/rest/repeated-lists.ts';
import { type ParsedObject, parseJsonObject } from '../../../src/wire/rest/strict-json.ts';

const choices = Array.from({ length: 60 }, (_, index) => `reason number ${index} ["of] \\ many: ü`);
const list = JSON.stringify(choices);
const parser = createBodyParser('choices');

function outcomeOf(parse: (body: Buffer) => ParsedObject, text: string): unknown {
  try {
    return parse(Buffer.from(text));
  } catch (error) {
    return error instanceof DomainError ? { reason: error.reason, message: error.message } : error;
  }
}

const listOf = ({ value }: ParsedObject): unknown => value.choices;

test('a list that comes again is the same object, however the rest of the body looks', (t) => {
  const bodies = [
    `{"input":"a","choices":${list},"model":"m"}`,
    `{"choices" :\n ${list} , "input" : "ü"}`,
    `{"input":"a list","choices":${list}}`,
    `{"__proto__":1,"choices":${list}}`,
  ];
  const own = createBodyParser('choices');
  const first = listOf(own(Buffer.from(bodies[0] as string)));
  t.deepEqual(first, choices);
  const known = listOf(own(Buffer.from(bodies[0] as string)));
  t.deepEqual(known, choices);
  for (const body of bodies) {
    const parsed = own(Buffer.from(body));
    t.is(listOf(parsed), known);
    t.deepEqual(parsed, parseJsonObject(Buffer.from(body)));
    t.deepEqual(Object.keys(parsed.value), Object.keys(parseJsonObject(Buffer.from(body)).value));
  }
});

// Bodies around a known list, sound and not: pieces put together at random.
const piece = fc.constantFrom(
  list,
  list.slice(0, -1),
  `${list.slice(0, -1)},1]`,
  list.replace('number 59', 'number 58'),
  '"choices"',
  '"choices":',
  '"\\u0063hoices":',
  '\\"choices\\":',
  '{"choices":',
  '"input":"x"',
  '"catalog":',
  '0',
  '"',
  ',',
  '}',
  '[',
  ']',
  ' ',
  '\\',
  'ü',
  '"x":',
);
const around = fc.tuple(fc.array(piece, { maxLength: 6 }), fc.array(piece, { maxLength: 6 }));

test('a body is read as if no list were known, faults and their places included', (t) => {
  parser(Buffer.from(`{"choices":${list}}`));
  fc.assert(
    fc.property(around, fc.boolean(), ([before, after], closed) => {
      const text = `{${before.join('')}"choices":${list}${after.join('')}${closed ? '}' : ''}`;
      t.deepEqual(outcomeOf(parser, text), outcomeOf(parseJsonObject, text), text);
    }),
    { numRuns: 3000 },
  );
});

test('a list inside another property, a second list and a stand-in of the caller’s are not taken for the list', (t) => {
  const own = createBodyParser('choices');
  const other = JSON.stringify(choices.toReversed());
  const texts = [
    `{"x":{"choices":${list}},"choices":${other}}`,
    `{"choices":${list},"choices":${other}}`,
    `{"x":{"choices":${list}},"\\u0063hoices":0}`,
    `{"x":{"choices":${list}},"\\u0063hoices":${other}}`,
    `{"input":"\\"choices\\":${JSON.stringify(list).slice(1, -1)}","choices":${other}}`,
    `{"choices":{"choices":${list}}}`,
    `{"choices":[${list}],"input":"a"}`,
  ];
  for (let round = 0; round < 3; round += 1) {
    for (const text of texts) t.deepEqual(outcomeOf(own, text), outcomeOf(parseJsonObject, text), text.slice(0, 60));
  }
});
