/** Contract 2.1 and 7: what a decision request must be, over HTTP/1.1 and HTTP/2, and over Connect and gRPC where the protocol can say it. */
import type { ClientHttp2Session } from 'node:http2';
import anyTest, { type TestFn } from 'ava';
import { type ExpectedError, isError, json, validBody } from '../support/answers.ts';
import { callGrpc, errorDetails, type GrpcClients, openGrpc } from '../support/grpc.ts';
import { decide, openSession, send, sendH2 } from '../support/http.ts';
import { startService, type TestService } from '../support/service.ts';

const test = anyTest as TestFn<{ service: TestService; session: ClientHttp2Session; grpc: GrpcClients }>;

test.before(async (t) => {
  const service = await startService();
  t.context = { service, session: openSession(service.port), grpc: openGrpc(service.port) };
});
test.after.always(async ({ context: { service, session, grpc } }) => {
  session.close();
  grpc.close();
  await service.stop();
});

const { model, instruction, choices } = validBody;
const without = (name: keyof typeof validBody): object =>
  Object.fromEntries(Object.entries(validBody).filter(([key]) => key !== name));
const numbered = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `choice ${index}`);

const bad = (code: string, param: string | null, message?: RegExp): ExpectedError => ({
  status: 400,
  code,
  param,
  ...(message === undefined ? {} : { message }),
});
const missing = (param: string): ExpectedError => bad('missing_field', param);
const wrongType = (param: string, message?: RegExp): ExpectedError => bad('invalid_type', param, message);
const invalidChoices = bad('invalid_choices', 'choices');
const either = bad('choices_or_catalog', 'choices');

/** Bodies that only JSON can say. */
const jsonFaults: readonly (readonly [what: string, body: unknown, ExpectedError])[] = [
  ...(['model', 'input', 'instruction'] as const).flatMap((name) =>
    [
      ['null', null],
      ['a number', 1],
      ['a boolean', true],
      ['false', false],
      ['a list', ['x']],
      ['an object', {}],
    ].map(
      ([type, value]) => [`${name} is ${type}`, { ...validBody, [name as string]: value }, wrongType(name)] as const,
    ),
  ),
  ...[null, 1, true, 'billing', {}, { 0: 'a', 1: 'b', length: 2 }].map(
    (value) => [`choices is ${JSON.stringify(value)}`, { ...validBody, choices: value }, wrongType('choices')] as const,
  ),
  ...[null, 1, true, {}, ['b']].map(
    (item) =>
      [
        `a choice is ${JSON.stringify(item)}`,
        { ...validBody, choices: ['a', item] },
        wrongType('choices', /choices\[1\] is not a string/),
      ] as const,
  ),
  ...[null, 1, true, [], {}].map(
    (value) =>
      [`catalog is ${JSON.stringify(value)}`, { ...without('choices'), catalog: value }, wrongType('catalog')] as const,
  ),
  ['choices: [] beside catalog', { ...validBody, choices: [], catalog: 'c' }, either],
  ['choices: null beside catalog', { ...validBody, choices: null, catalog: 'c' }, either],
  ['catalog: null beside choices', { ...validBody, catalog: null }, either],
  ['both null', { ...validBody, choices: null, catalog: null }, either],
  ['an unknown property', { ...validBody, temperature: 1 }, bad('unknown_field', 'temperature')],
  [
    'the documentation’s own word for the field',
    { ...validBody, question: 'x' },
    bad('unknown_field', 'question', /which has model, input, instruction, choices, catalog$/),
  ],
  ['an unknown property of null', { ...validBody, temperature: null }, bad('unknown_field', 'temperature')],
  ['constructor', { ...validBody, constructor: {} }, bad('unknown_field', 'constructor')],
  ['toString', { ...validBody, toString: 'x' }, bad('unknown_field', 'toString')],
  ['hasOwnProperty', { ...validBody, hasOwnProperty: 'x' }, bad('unknown_field', 'hasOwnProperty')],
  ['an empty name', { ...validBody, '': 1 }, bad('unknown_field', '')],
  ['a name in another case', { ...validBody, Model: 'x' }, bad('unknown_field', 'Model')],
  ['the message’s own type name', { ...validBody, $typeName: 'x' }, bad('unknown_field', '$typeName')],
  [
    'another dialect: questions',
    { questions: [], state: {} },
    bad('unknown_field', 'questions', /which has model, input, instruction, choices, catalog$/),
  ],
  [
    'another dialect: state',
    { ...validBody, state: 'x' },
    bad('unknown_field', 'state', /which has model, input, instruction, choices, catalog$/),
  ],
];

/** Faults that every protocol can say: gRPC's clients leave a field out where JSON has an empty string. */
const sharedFaults: readonly (readonly [what: string, body: object, ExpectedError])[] = [
  ['no model', without('model'), missing('model')],
  ['no input', without('input'), missing('input')],
  ['no instruction', without('instruction'), missing('instruction')],
  ['neither choices nor catalog', without('choices'), either],
  ['both choices and catalog', { ...validBody, catalog: 'c' }, either],
  ['1 choice', { ...validBody, choices: ['a'] }, invalidChoices],
  ['301 choices', { ...validBody, choices: numbered(301) }, invalidChoices],
  ['an empty choice', { ...validBody, choices: ['a', ''] }, invalidChoices],
  ['the same choice twice', { ...validBody, choices: ['a', 'b', 'a'] }, invalidChoices],
  ['an empty catalog', { ...without('choices'), catalog: '' }, bad('invalid_value', 'catalog')],
  [
    'a catalog without a key',
    { ...without('choices'), catalog: 'c' },
    { status: 401, code: 'authentication_required', param: null },
  ],
  ['an unknown model', { ...validBody, model: 'gpt-12' }, bad('unknown_model', 'model')],
  ['an unknown revision', { ...validBody, model: 'minilm-l6@r99' }, bad('unknown_model', 'model')],
  ['a model in capitals', { ...validBody, model: 'MiniLM-L6' }, bad('unknown_model', 'model')],
  ['two revisions', { ...validBody, model: 'minilm-l6@r1@r1' }, bad('unknown_model', 'model')],
  ['an empty revision', { ...validBody, model: 'minilm-l6@' }, bad('unknown_model', 'model')],
  ['a revision alone', { ...validBody, model: '@r1' }, bad('unknown_model', 'model')],
  ['spaces around the model', { ...validBody, model: ' minilm-l6 ' }, bad('unknown_model', 'model')],
  ['a path for a model', { ...validBody, model: '../minilm-l6' }, bad('unknown_model', 'model')],
  ['__proto__ for a model', { ...validBody, model: '__proto__' }, bad('unknown_model', 'model')],
  ['NUL in a model', { ...validBody, model: 'minilm-l6\0' }, bad('unknown_model', 'model')],
  ['a model of 100,000 characters', { ...validBody, model: 'm'.repeat(100_000) }, bad('unknown_model', 'model')],
  [
    'an input over the limit',
    { ...validBody, input: 'word '.repeat(501) },
    bad('input_tokens_exceeded', 'input', /\d{3}.* at most 500/),
  ],
  [
    'an input of 900,000 characters',
    { ...validBody, input: 'word '.repeat(180_000) },
    bad('input_tokens_exceeded', 'input', /more than \d+.* at most 500/),
  ],
  [
    'an instruction over the limit',
    { ...validBody, instruction: 'word '.repeat(501) },
    bad('input_tokens_exceeded', 'input'),
  ],
  [
    'a choice over the limit',
    { ...validBody, choices: ['a', 'word '.repeat(129)] },
    bad('candidate_tokens_exceeded', 'choices', /at most 96/),
  ],
  // Several faults: the first in the contract's order of fields.
  ['model and choices', { ...validBody, model: 'gpt-12', choices: ['a'] }, invalidChoices],
  ['input and choices missing', { model, instruction }, missing('input')],
  ['everything missing', {}, missing('model')],
];

/** Further ones over REST, where an empty string is not a missing field. */
const emptyFaults = (['model', 'input', 'instruction'] as const).map(
  (name) => [`${name} is empty`, { ...validBody, [name]: '' }, bad('invalid_value', name)] as const,
);
const precedence: readonly (readonly [string, object, ExpectedError])[] = [
  ['unknown before missing', { extra: 1 }, bad('unknown_field', 'extra')],
  ['unknown before a wrong type, whatever their order', { model: 1, extra: 1 }, bad('unknown_field', 'extra')],
  ['model’s type before input’s absence', { model: 1, instruction, choices }, wrongType('model')],
  ['input’s absence before choices’ type', { model, instruction, choices: 1 }, missing('input')],
  [
    'instruction’s value before choices',
    { ...validBody, instruction: '', choices: ['a'] },
    bad('invalid_value', 'instruction'),
  ],
  ['both before the type of either', { ...validBody, choices: 1, catalog: 1 }, either],
];

for (const [what, body, expected] of [...jsonFaults, ...emptyFaults, ...precedence, ...sharedFaults]) {
  test(`REST: ${what}`, async (t) => {
    isError(t, await decide(t.context.service.port, body), expected);
    isError(t, await sendH2(t.context.session, { body: JSON.stringify(body) }), expected, 'over HTTP/2');
  });
}

for (const [what, body, expected] of sharedFaults) {
  test(`Connect: ${what}`, async (t) => {
    const answer = await send(t.context.service.port, {
      path: '/umpire.v1.DecisionService/CreateDecision',
      body: JSON.stringify(body),
    });
    t.is(answer.status, expected.status);
    const error = json(answer) as unknown as { code: string; details: { type: string; debug: unknown }[] };
    t.is(error.code, expected.status === 401 ? 'unauthenticated' : 'invalid_argument');
    t.like(
      error.details.find(({ type }) => type === 'google.rpc.ErrorInfo')?.debug,
      { reason: expected.code.toUpperCase(), domain: 'umpire' },
      answer.text,
    );
  });
  test(`gRPC: ${what}`, async (t) => {
    const { error, trailers } = await callGrpc(t.context.grpc.decisions, 'CreateDecision', body);
    t.is(error?.code, expected.status === 401 ? 16 : 3);
    const details = errorDetails(trailers);
    t.like(details, { reason: expected.code.toUpperCase(), domain: 'umpire', param: expected.param });
  });
}

test('2 and 300 choices are legal', async (t) => {
  for (const count of [2, 300]) {
    const answer = await decide(t.context.service.port, { ...validBody, choices: numbered(count) });
    t.is(answer.status, 200, answer.text.slice(0, 200));
    const { output } = json(answer) as { output: { probabilities: object } };
    t.is(Object.keys(output.probabilities).length, count);
  }
});

test('an input of exactly the limit is legal, and what was counted is what usage says', async (t) => {
  const { port } = t.context.service;
  const refused = await decide(port, { ...validBody, input: 'word '.repeat(600) });
  const [, tokens] = /have (\d+) tokens/.exec(refused.text) ?? [];
  const room = 500 - (Number(tokens) - 600);
  const most = await decide(port, { ...validBody, input: 'word '.repeat(room) });
  t.is(most.status, 200, most.text);
  t.like(json(most), { usage: { input_tokens: 500 } });
  isError(
    t,
    await decide(port, { ...validBody, input: 'word '.repeat(room + 1) }),
    bad('input_tokens_exceeded', 'input', /have 501 tokens/),
  );
});

test('a lone surrogate is refused in every field, a pair is not', async (t) => {
  const { port } = t.context.service;
  const escaped = (name: string): string => JSON.stringify({ ...validBody, [name]: '@' }).replace('"@"', '"\\ud83d"');
  for (const name of ['input', 'instruction'])
    isError(t, await send(port, { body: escaped(name) }), bad('invalid_value', name));
  isError(t, await send(port, { body: escaped('model') }), { status: 400, code: 'invalid_value', param: 'model' });
  const inChoices = JSON.stringify({ ...validBody, choices: ['a', '@'] });
  isError(t, await send(port, { body: inChoices.replace('"@"', '"\\udc00 x"') }), invalidChoices);
  t.is((await send(port, { body: inChoices.replace('"@"', '"\\ud83d\\ude00"') })).status, 200);
});
