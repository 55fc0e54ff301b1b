/** The scanner of bodies, beside JSON.parse. */
import { gzipSync } from 'node:zlib';
import test from 'ava';
import fc from 'fast-check';
import { DomainError } from '../../../src/domain/errors.ts';
import { type ObjectShape, type ScannedBody, scanBody } from '../../../src/wire/http/strict-json.ts';
import { costs, hostileBodies } from '../../support/hostile-bodies.ts';

const SHAPE: ObjectShape = new Map([
  ['a', 'string'],
  ['b', 'string'],
  ['"', 'string'],
  ['\\', 'string'],
  ['list', 'strings'],
]);
const scan = (text: string): ScannedBody => scanBody(Buffer.from(text), SHAPE);

const DUPLICATES: readonly (readonly [text: string, duplicate: string | undefined])[] = [
  ['{}', undefined],
  ['{"a":"1","b":"2"}', undefined],
  ['{"a":"1","a":"1"}', 'a'],
  ['{"a":1,"b":2,"a":3,"b":4}', 'a'],
  ['{"a":1,"a":@', 'a'],
  ['{"a":"1","\\u0061":"2"}', 'a'],
  ['{"\\u0061":"1","\\u0061":"2"}', 'a'],
  ['{"\\"":"1","\\"":"2"}', '"'],
  ['{"\\"":"","\\\\":"0"}', undefined],
  ['{"\\\\":"1","\\u005c":"2"}', '\\'],
  ['{"a":"\\"a\\":","b":"a"}', undefined],
  ['{"list":["a","a",":"],"b":"a:a:a"}', undefined],
  ['{"list":[],"list":["a"]}', 'list'],
  ['{ "a" : "1" , "a" : "2" }', 'a'],
];
for (const [text, duplicate] of DUPLICATES) {
  test(`the property twice in ${text}`, (t) => {
    const body = scan(text);
    t.deepEqual(body.kind === 'duplicate' ? body.name : undefined, duplicate);
  });
}

const STOPS: readonly (readonly [what: string, text: string, ScannedBody])[] = [
  ['an unknown property, whatever follows', '{"a":"1","x":@', { kind: 'unknown', name: 'x' }],
  ['one that is written with escapes', '{"\\u005f_proto__":', { kind: 'unknown', name: '__proto__' }],
  ['a long one', `{"${'n'.repeat(500)}"`, { kind: 'unknown', name: 'n'.repeat(129) }],
  ['an object', '{"a":{', { kind: 'nested', name: 'a', place: undefined, isObject: false }],
  ['a list in place of a string', '{"a":[', { kind: 'nested', name: 'a', place: undefined, isObject: false }],
  ['a list in a list', '{"list":["x",[', { kind: 'nested', name: 'list', place: 1, isObject: false }],
  ['a number in a list', '{"list":["x",0', { kind: 'nested', name: 'list', place: 1, isObject: false }],
  ['an object in a list', '{"list":[{', { kind: 'nested', name: 'list', place: 0, isObject: true }],
];
for (const [what, text, expected] of STOPS) test(`stops at ${what}`, (t) => t.deepEqual(scan(text), expected));

/** What JSON.parse says of a body, in the scanner's words. */
function byLibrary(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'not JSON';
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not JSON';
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      name === 'list' && typeof each === 'string' ? 'other' : plain(each),
    ]),
  );
}
function plain(value: unknown): unknown {
  if (typeof value === 'string') return value;
  return Array.isArray(value) && value.every((each) => typeof each === 'string') ? value : 'other';
}
function byScanner(text: string): unknown {
  try {
    const body = scan(text);
    if (body.kind !== 'object') return body.kind;
    return Object.fromEntries(
      [...body.values].map(([name, value]) => [name, value.kind === 'other' ? 'other' : plain(value.read())]),
    );
  } catch (error) {
    if (error instanceof DomainError && error.reason === 'INVALID_JSON') return 'not JSON';
    throw error;
  }
}

const part = fc.oneof(
  fc.constantFrom(...'{}[],:"\\ü \n\t\u00a0\ufeff', '"a"', '"b":', '"list":', '"a":"', '\\u00', '\\ud83d'),
  fc.constantFrom(
    ...'0 -0 01 1.5 1. .5 1e5 1E+5 1e - true false null nul NaN undefined \u0000 \u001f \u007f'.split(' '),
  ),
  fc.json({ maxDepth: 1 }),
);

test('finds what JSON.parse finds in bodies of all kinds, unless it stops before', (t) => {
  let read = 0;
  const whole = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''));
  const near = fc
    .tuple(
      fc.array(fc.tuple(fc.constantFrom('"a"', '"b"', '"list"', '"\\u0061"'), part), { maxLength: 4 }),
      fc.boolean(),
    )
    .map(([pairs, closed]) => `{${pairs.map(([name, value]) => `${name}:${value}`).join(',')}${closed ? '}' : ''}`);
  fc.assert(
    fc.property(fc.oneof(whole, near), (text) => {
      const found = byScanner(text);
      if (found === 'unknown' || found === 'nested' || found === 'duplicate') return;
      t.deepEqual(found, byLibrary(text), text);
      read += 1;
    }),
    { numRuns: 20_000 },
  );
  t.true(read > 5000);
});

test('strings are those of JSON.parse, with every escape and surrogate', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.array(fc.integer({ min: 0, max: 0xffff })), (text, units) => {
      const each = text + String.fromCharCode(...units).toWellFormed();
      for (const written of [
        JSON.stringify(each),
        `"${[...each].map((c) => (c.length > 1 ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)).join('')}"`,
      ]) {
        const body = scan(`{"a":${written},"list":[${written}]}`);
        const value = body.kind === 'object' ? body.values.get('a') : undefined;
        const list = body.kind === 'object' ? body.values.get('list') : undefined;
        t.is(value?.kind === 'string' ? value.read() : undefined, each);
        t.deepEqual(list?.kind === 'strings' ? list.read() : undefined, [each]);
      }
    }),
  );
});

const REFUSED: readonly (readonly [what: string, bytes: Uint8Array, message: RegExp])[] = [
  ['nothing', Buffer.alloc(0), /empty/],
  ['white space', Buffer.from('\n \t\r'), /empty/],
  ['a byte order mark', Buffer.from('\ufeff{}'), /byte order mark/],
  ['invalid UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), /UTF-8/],
  ['a list', Buffer.from('[]'), /object/],
  ['null', Buffer.from('null'), /object/],
  ['a number', Buffer.from('7'), /object/],
  ['garbage, without quoting it', Buffer.from('{"a": geheim}'), /^the body is not valid JSON \(at position 6\)$/],
  ['garbage in a body with lines', Buffer.from('{\n "a": 1\n}x'), /^the body is not valid JSON \(line 3, column 2\)$/],
  [
    'a raw line break in a string',
    Buffer.from('{\n "a": "x\ny"}'),
    /\(line 2, column 9\): a line break .* must be escaped, as in \\n$/,
  ],
  ['an object that was encoded twice', Buffer.from(JSON.stringify('{"a":"x"}')), /a JSON string that holds an object/],
  ['one with line breaks', Buffer.from(JSON.stringify('\n {"a":"x"}')), /a JSON string that holds an object/],
  ['what cmd leaves of an object', Buffer.from("'{model:"), /\(at position 0\): names and texts need double quotes/],
  ['what PowerShell leaves', Buffer.from('{model: x}'), /\(at position 1\): names and texts need double quotes/],
  ['another string', Buffer.from('"text"'), /^the body must be a JSON object$/],
  ['UTF-16 with a mark', Buffer.from('\ufeff{"a":"x"}', 'utf16le'), /; this looks like UTF-16$/],
  ['UTF-16 without one', Buffer.from('{"a":"x"}', 'utf16le'), /; this looks like UTF-16$/],
  [
    'Latin-1',
    Buffer.from('{"a":"Gr\u00fc\u00dfe"}'.replace('\u00dfe', 'n'), 'latin1'),
    /; this looks like Latin-1 or Windows-1252$/,
  ],
  [
    'GBK',
    Buffer.concat([Buffer.from('{"a":"'), Buffer.from('c4e3bac3cac0bde7', 'hex'), Buffer.from('"}')]),
    /looks like GBK/,
  ],
  ['gzip', gzipSync('{}'), /; this looks like gzip: unpack it, or send it with Content-Encoding: gzip$/],
  [
    'a fault far into UTF-8',
    Buffer.concat([Buffer.from(`{"a":"${'é'.repeat(4000)}`), Buffer.of(0xe9, 0x22)]),
    /^the body is not valid UTF-8$/,
  ],
  [
    'Chinese in UTF-8, cut off',
    Buffer.from(`{"a":"${'你好世界'.repeat(500)}`).subarray(0, -1),
    /^the body is not valid UTF-8$/,
  ],
  ['bytes of no encoding', Buffer.from('7b2261223a22ff41fefe', 'hex'), /^the body is not valid UTF-8$/],
  ['a cut-off text', Buffer.from('{"a": "geheim'), /^the body is not valid JSON: it ends too early$/],
];
for (const [what, bytes, message] of REFUSED)
  test(`refuses ${what}`, (t) => t.throws(() => scanBody(bytes, SHAPE), { instanceOf: DomainError, message }));

const REQUEST: ObjectShape = new Map([
  ['model', 'string'],
  ['input', 'string'],
  ['instruction', 'string'],
  ['choices', 'strings'],
  ['catalog', 'string'],
]);
for (const [what, make] of Object.entries(hostileBodies)) {
  test.serial(`a body of ${what} takes no longer than its size`, (t) => {
    const [small, large] = costs(make, (bytes) => scanBody(bytes, REQUEST));
    t.true(large < 16 * 4 * Math.max(small, 0.5), `${small} ms, then ${large} ms`);
    t.true(large < 40, `${large} ms`);
  });
}
