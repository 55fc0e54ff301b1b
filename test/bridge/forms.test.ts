/** Both forms without a socket: what a body asks of the service, how the answers are written, and what is refused. */
import test from 'ava';
import { readJson } from '../../src/bridge/json.ts';
import { OPENAI } from '../../src/bridge/openai.ts';
import type { Form } from '../../src/bridge/question.ts';
import { checkBody } from '../../src/bridge/rules.ts';
import { SYSTEM_ONE } from '../../src/bridge/system-one.ts';
import { Refused } from '../../src/front/refused.ts';

const read = (form: Form, text: string | Uint8Array) => {
  const body = readJson(typeof text === 'string' ? Buffer.from(text) : text);
  checkBody(body, form.rule);
  return { body, asked: form.ask(body) };
};
const asked = (form: Form, body: object) => read(form, JSON.stringify(body)).asked;
const refusal = (form: Form, text: string | Uint8Array) => {
  try {
    read(form, text);
  } catch (error) {
    if (error instanceof Refused) return form.refuse(error);
    throw error;
  }
  throw new Error(`accepted: ${text}`);
};

const systemOne = (question: object, others: object = {}) => ({
  model: 'm',
  state: 's',
  questions: { q: question },
  ...others,
});
const openAi = (question: object, others: object = {}) => ({
  model: 'm',
  input: 's',
  questions: [question],
  ...others,
});
const CHOICE = { type: 'choice', instructions: 'Which?', criteria: { a: null, b: null } };
const PREDICATE = { type: 'predicate', instructions: 'It rains.' };
const numbered = (count: number): Record<string, null> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`c${i}`, null]));

const QUESTIONS: readonly (readonly [Form, object, instruction: string, options: readonly string[]])[] = [
  [SYSTEM_ONE, CHOICE, 'Which?', ['a', 'b']],
  [SYSTEM_ONE, { ...CHOICE, criteria: { a: 'x', b: { y: [1] } } }, 'Which?', ['a: x', 'b: {"y":[1]}']],
  [SYSTEM_ONE, { type: 'choice', criteria: { a: '', b: null } }, 'Which choice best fits the input?', ['a', 'b']],
  [SYSTEM_ONE, { type: 'noul', instructions: 'Rain?' }, 'Rain?', ['yes', 'no']],
  [SYSTEM_ONE, { type: 'noul', criteria: { true: 'wet' } }, 'Is this true of the input?', ['yes: wet', 'no']],
  [SYSTEM_ONE, { type: 'noul', instructions: ['a'], criteria: null }, '["a"]', ['yes', 'no']],
  [
    SYSTEM_ONE,
    { type: 'score', criteria: ['low', { at: 1 }] },
    'Which level best fits the input?',
    ['low', '{"at":1}'],
  ],
  [OPENAI, PREDICATE, 'It rains.', ['yes', 'no']],
  [
    OPENAI,
    {
      ...PREDICATE,
      instructions: [
        { type: 'input_text', text: 'a' },
        { type: 'input_json', data: [{}] },
      ],
    },
    'a\n[{}]',
    ['yes', 'no'],
  ],
  [
    OPENAI,
    { type: 'choice', instructions: 'W', choices: [{ value: true, description: 'x' }, { value: 'false' }] },
    'W',
    ['true: x', 'false'],
  ],
  [
    OPENAI,
    { type: 'score', instructions: '', levels: [{ label: 'a' }, { label: 'b', description: 'c' }] },
    'Which level best fits the input?',
    ['a', 'b: c'],
  ],
];

test('each question becomes one decision, with described choices', (t) => {
  for (const [form, question, instruction, options] of QUESTIONS) {
    const [one] = asked(form, form === OPENAI ? openAi(question) : systemOne(question)).questions;
    t.deepEqual([one?.instruction, one?.options], [instruction, options], JSON.stringify(question));
  }
});

test('what is not a text is read as its JSON, and a conversation with who said what', (t) => {
  t.is(asked(SYSTEM_ONE, systemOne(CHOICE, { state: { b: 1, a: ['x'] } })).input, '{"b":1,"a":["x"]}');
  const input = [
    { role: 'system', content: 'Be brief.' },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Weather?' }] },
    { type: 'function_call', call_id: '1', name: 'weather', arguments: '{}' },
    { type: 'function_call_output', call_id: '1', output: 'rain' },
    {
      role: 'assistant',
      content: [
        { type: 'output_text', text: 'Rain.' },
        { type: 'refusal', refusal: 'No more.' },
      ],
    },
  ];
  t.is(
    asked(OPENAI, openAi(PREDICATE, { input })).input,
    'system: Be brief.\n\nuser: Weather?\n\ncall of weather: {}\n\nresult of weather: rain\n\nassistant: Rain.\nNo more.',
  );
  t.is(asked(OPENAI, openAi(PREDICATE, { input: [{ role: 'user', content: 'alone' }] })).input, 'alone');
});

test('confidence and score follow the specification of System One', (t) => {
  const questions = {
    choice: { type: 'choice', criteria: numbered(4) },
    score: { type: 'score', criteria: ['a', 'b', 'c'] },
    sure: { type: 'score', criteria: ['a', 'b'] },
    noul: { type: 'noul', instructions: 'x' },
  };
  const { body } = read(SYSTEM_ONE, JSON.stringify({ model: 'm', state: 's', questions }));
  const answers = [
    { chosen: 2, probabilities: [0.1, 0.1, 0.7, 0.1] },
    { chosen: 2, probabilities: [0.1, 0.2, 0.7] },
    { chosen: 0, probabilities: [1, 0] },
    { chosen: 1, probabilities: [0.2, 0.8] },
  ];
  t.deepEqual(SYSTEM_ONE.answer(body, { model: 'm@r', answers, inputTokens: 12 }), {
    model: 'm@r',
    answers: {
      choice: { type: 'choice', choice: 'c2', confidence: 0.6, probabilities: { c0: 0.1, c1: 0.1, c2: 0.7, c3: 0.1 } },
      score: {
        type: 'score',
        score: 1.6,
        // 1 - (0.1 × 2 + 0.2 × 1) / (2 / 3)
        confidence: 0.4,
        legend: { 0: 'a', 1: 'b', 2: 'c' },
        probabilities: { 0: 0.1, 1: 0.2, 2: 0.7 },
      },
      sure: { type: 'score', score: 0, confidence: 1, legend: { 0: 'a', 1: 'b' }, probabilities: { 0: 1, 1: 0 } },
      noul: { type: 'noul', noul: 0.2 },
    },
    usage: { input_tokens: 12, output_tokens: 0 },
  });
});

test('labels that a JavaScript object would lose or move are answered as they came', (t) => {
  const text =
    '{"model":"m","state":"s","questions":{"__proto__":{"type":"choice","criteria":{"b":null,"__proto__":null,"10":null}}}}';
  const { body, asked: all } = read(SYSTEM_ONE, text);
  const options = all.questions[0]?.options ?? [];
  t.deepEqual([...options].sort(), ['10', '__proto__', 'b']);
  const probabilities = options.map((option) => ({ b: 0.5, __proto__: null, 10: 0.2 })[option] ?? 0.3);
  const answer = SYSTEM_ONE.answer(body, {
    model: 'm@r',
    answers: [{ chosen: options.indexOf('b'), probabilities }],
    inputTokens: 1,
  });
  t.regex(JSON.stringify(answer), /"__proto__":\{"type":"choice","choice":"b",.*"__proto__":0\.3/);
});

/** Bodies of the one form: what is wrong with them, and where. */
const WRONG: readonly (readonly [body: object, loc: readonly (string | number)[], type: string, msg: RegExp])[] = [
  [systemOne(CHOICE, { state: undefined }), ['state'], 'missing', /missing/],
  [systemOne(CHOICE, { state: '' }), ['state'], 'invalid_value', /empty/],
  [systemOne(CHOICE, { state: 1 }), ['state'], 'invalid_type', /string or object or array, not number/],
  [systemOne(CHOICE, { seed: 1 }), ['seed'], 'extra_forbidden', /not a field/],
  [systemOne(CHOICE, { assets: { a: {} } }), ['assets'], 'invalid_value', /text alone/],
  [systemOne(CHOICE, { questions: {} }), ['questions'], 'invalid_value', /1 to 400/],
  [systemOne(CHOICE, { questions: { '': CHOICE } }), ['questions'], 'invalid_value', /name/],
  [systemOne({ type: 'box', instructions: 'x' }), ['questions', 'q'], 'invalid_value', /images/],
  [systemOne({ type: 'boolean' }), ['questions', 'q', 'type'], 'invalid_value', /noul, choice, score/],
  [systemOne({}), ['questions', 'q', 'type'], 'missing', /missing/],
  [systemOne({ type: 'noul' }), ['questions', 'q', 'instructions'], 'missing', /criteria/],
  [systemOne({ ...CHOICE, multiple: true }), ['questions', 'q', 'multiple'], 'extra_forbidden', /not a field/],
  [systemOne({ ...CHOICE, criteria: { a: null } }), ['questions', 'q', 'criteria'], 'invalid_value', /2 to 300/],
  [systemOne({ ...CHOICE, criteria: numbered(301) }), ['questions', 'q', 'criteria'], 'invalid_value', /not 301/],
  [
    systemOne({ ...CHOICE, criteria: { 'a: b': null, a: 'b' } }),
    ['questions', 'q', 'criteria'],
    'invalid_choices',
    /alike/,
  ],
  [
    systemOne({ type: 'score', criteria: { 0: 'a' } }),
    ['questions', 'q', 'criteria'],
    'invalid_type',
    /array, not object/,
  ],
  [systemOne({ type: 'score', criteria: ['a', 'a'] }), ['questions', 'q', 'criteria'], 'invalid_choices', /alike/],
  [systemOne({ type: 'score', criteria: ['a', null] }), ['questions', 'q', 'criteria', 1], 'invalid_type', /not null/],
];

test('a System One body is refused with 422 by the place and the name of what is wrong', (t) => {
  for (const [body, loc, type, msg] of WRONG) {
    const { status, body: said } = refusal(SYSTEM_ONE, JSON.stringify(body));
    const [detail, ...others] = (said as { detail: { loc: unknown; type: string; msg: string }[] }).detail;
    t.deepEqual([status, detail?.loc, detail?.type, others], [422, ['body', ...loc], type, []], JSON.stringify(body));
    t.regex(detail?.msg ?? '', msg);
  }
});

const MESSAGE = (content: unknown, role = 'user') => [{ role, content }];
const WRONG_OPENAI: readonly (readonly [body: object, param: string, code: string])[] = [
  [
    openAi(PREDICATE, { input: MESSAGE([{ type: 'input_image', image_url: 'data:,' }]) }),
    'input[0].content[0]',
    'invalid_value',
  ],
  [openAi(PREDICATE, { input: MESSAGE([{ type: 'input_text', text: '' }]) }), 'input', 'invalid_value'],
  [openAi(PREDICATE, { input: MESSAGE('x', 'tool') }), 'input[0].role', 'invalid_value'],
  [
    openAi(PREDICATE, { input: [{ type: 'function_call_output', call_id: 'a', output: 'x' }] }),
    'input[0].call_id',
    'invalid_value',
  ],
  [openAi(PREDICATE, { temperature: '0' }), 'temperature', 'unknown_field'],
  [openAi({ ...PREDICATE, instructions: undefined }), 'questions[0].instructions', 'missing_field'],
  [openAi({ ...PREDICATE, choices: [] }), 'questions[0].choices', 'unknown_field'],
  [
    openAi({ type: 'choice', instructions: 'x', choices: [{ value: 1 }, { value: 'b' }] }),
    'questions[0].choices[0].value',
    'invalid_type',
  ],
  [
    openAi({ type: 'choice', instructions: 'x', choices: [{ value: true }, { value: 'true' }] }),
    'questions[0].choices',
    'invalid_choices',
  ],
];

test("a body of OpenAI's form is refused in its envelope, with the place as the parameter", (t) => {
  for (const [body, param, code] of WRONG_OPENAI) {
    const { status, body: said } = refusal(OPENAI, JSON.stringify(body));
    const { error } = said as { error: Record<string, unknown> };
    t.deepEqual(
      [status, error.param, error.code, error.type],
      [400, param, code, 'invalid_request_error'],
      `${error.message}`,
    );
  }
});

test('JSON is read strictly', (t) => {
  const valid = JSON.stringify(systemOne(CHOICE));
  const deep = `{"model":"m","state":${'['.repeat(50)}${']'.repeat(50)},"questions":{"q":{"type":"noul","instructions":"x"}}}`;
  const cases: readonly (readonly [string | Uint8Array, string])[] = [
    [valid.slice(0, -1), 'invalid_json'],
    [`\ufeff${valid}`, 'invalid_json'],
    [Buffer.from([0x7b, 0xff, 0x7d]), 'invalid_json'],
    [deep, 'invalid_json'],
    [`{"model":"m","state":[${'1,'.repeat(100_001)}1]}`, 'invalid_json'],
    [valid.replace('"a":null', '"a":null,"a":"x"'), 'duplicate_field'],
    [valid.replace('"state":"s"', '"state":"\\ud800"'), 'invalid_value'],
    [valid.replace('"a":null', '"\\udfff":null'), 'invalid_value'],
    ['"text"', 'invalid_type'],
    ['null', 'invalid_type'],
  ];
  for (const [text, type] of cases) {
    const { status, body } = refusal(SYSTEM_ONE, text);
    t.deepEqual([status, (body as { detail: { type: string }[] }).detail[0]?.type], [422, type]);
  }
  t.notThrows(() => read(SYSTEM_ONE, valid.replace('"s"', '"\\ud83d\\ude00 : , [ \\" {"')));
});
