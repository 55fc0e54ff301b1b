/** Servers that decide themselves: what they are asked, to the letter, and what is made of their probabilities. */
import test, { type ExecutionContext } from 'ava';
import {
  bodyOf,
  halfDigitOf,
  logitsOf,
  probabilitiesIn,
  readSystemOneOptions,
  type SystemOneVariant,
} from '../../../../src/engine/families/remote/dialects/system-one.ts';
import { turnsOf } from '../../../../src/engine/families/remote/scorer.ts';
import { job, probabilitiesOf, startEngine, terms } from '../../support/engine.ts';
import { TOO_LONG } from '../../support/http-models/refusals.ts';
import { type SystemOneServed, systemOneDialect } from '../../support/http-models/system-one.ts';
import { createEncoder } from '../../support/http-models/text-models.ts';
import { modelsFolder, TINY } from '../../support/packages.ts';
import {
  problemsOf,
  type RemotePackageSource,
  type RemoteScene,
  sameDecisions,
  startRemoteScene,
} from '../../support/remote-packages.ts';

const VARIANTS = ['systemone', 'decisions'] as const satisfies readonly SystemOneVariant[];

const OPTIONS = {
  dialect: 'system-one',
  model: 'small',
  cuts: 'refuses',
  tokenizer: 'tokenizer.json',
  temperature: 1,
};

/** A scene whose server decides as `tiny` does. */
async function startScene(
  t: ExecutionContext,
  variant: SystemOneVariant,
  { served = {}, source = {} }: { served?: Partial<SystemOneServed>; source?: Partial<RemotePackageSource> } = {},
): Promise<RemoteScene> {
  const encoder = await createEncoder();
  const dialect = systemOneDialect({
    ...{ variant, encoder, model: 'small', options: 255, maxTokens: 60, jointWeight: 0.25, temperature: 0.5 },
    ...served,
  });
  return await startRemoteScene(t, dialect, {
    manifest: { limits: { input_tokens: 40, candidate_tokens: 12, choices: 255 } },
    ...source,
    options: { ...OPTIONS, variant, ...source.options },
  });
}

const REQUESTS = [
  { input: 'abc abd', instruction: 'which', choices: ['abc', 'xyz'] },
  {
    input: 'say "a"\\ b\n',
    instruction: 'which\u2028',
    choices: ['10', '9', '2', '__proto__', 'x"y\\z', 'a\nb', '🙂 c'],
  },
  { input: 'a b c d', instruction: 'q', choices: Array.from({ length: 200 }, (_, i) => `${i * 7}`) },
];

for (const variant of VARIANTS) {
  test.serial(`${variant}: the decisions of the same model here`, async (t) => {
    const scene = await startScene(t, variant);
    const here = await startEngine(t, { modelsDir: await modelsFolder(t, TINY) });
    await sameDecisions(t, here, REQUESTS, { by: scene.engine, within: 1e-5 });
  });

  test.serial(`${variant}: choices go in code-unit order, numbers too, and turned for every permutation`, async (t) => {
    const scene = await startScene(t, variant, { served: { placeBias: 1 }, source: { options: { permutations: 4 } } });
    const asked = job({ model: 'remote', choices: ['10', '9', '2', 'b', '1'] });
    const before = scene.server.requests.length;
    const first = await scene.engine.score(asked, terms());
    const texts = scene.server.requests.slice(before).map(({ text }) => text);
    const orders = texts.map((text) => [...text.matchAll(/"(10|9|2|b|1)"[:}]/g)].map(([, name]) => name).join());
    t.deepEqual(orders.sort(), ['1,10,2,9,b', '10,2,9,b,1', '2,9,b,1,10', '9,b,1,10,2']);
    t.deepEqual(
      await scene.engine.score(asked, terms()).then((again) => probabilitiesOf(asked, again)),
      probabilitiesOf(asked, first),
    );
    const body = JSON.parse(texts[0] as string);
    t.is(Array.isArray(body.questions) ? body.questions.length : Object.keys(body.questions).length, 1);
  });
}

test.serial('a text that the server refuses without a count is told to the caller', async (t) => {
  const limits = { input_tokens: 100, candidate_tokens: 12, choices: 20 };
  // The largest legal request is tried at load: the server takes it then, and less afterwards.
  const served = { maxTokens: 1000 };
  const { engine, server, status } = await startScene(t, 'systemone', { served, source: { manifest: { limits } } });
  Object.assign(server.behaviour, { fault: { kind: 'reply', reply: TOO_LONG['system one']() }, faultFor: 1 });
  const asked = job({ model: 'remote', input: 'abc' });
  t.deepEqual(await engine.score(asked, terms()), { kind: 'input_too_long', tokens: 100, limit: 100, atLeast: true });
  t.is(status(), 'ready');
  t.is((await engine.score(asked, terms())).kind, 'scored');
});

test('the body is JSON to the letter', (t) => {
  const question = { model: 'm', state: 'a "b"', instructions: 'i\n', choices: ['10', '9', '2', '__proto__'] };
  t.is(
    bodyOf(question, 'systemone'),
    '{"model":"m","state":"a \\"b\\"","questions":{"decision":{"type":"choice","instructions":"i\\n",' +
      '"criteria":{"10":null,"9":null,"2":null,"__proto__":null}}}}',
  );
  t.is(
    bodyOf(question, 'decisions'),
    '{"model":"m","input":"a \\"b\\"","questions":[{"type":"choice","name":"decision","instructions":"i\\n",' +
      '"choices":[{"value":"10"},{"value":"9"},{"value":"2"},{"value":"__proto__"}]}]}',
  );
});

test('an answer has a probability of each choice and of nothing else, or it is none', (t) => {
  const choices = ['a', 'b', '__proto__'];
  const right = JSON.parse('{"a":0.5,"b":0.3,"__proto__":0.2}');
  const answer = (probabilities: unknown, beside: object = {}, usage: unknown = {}) => ({
    answers: { decision: { type: 'choice', probabilities, ...beside } },
    usage,
  });
  const read = (body: unknown): readonly number[] => [...probabilitiesIn(body, choices, 'systemone')];
  t.deepEqual(read(answer(right)), [0.5, 0.3, 0.2]);
  for (const [body, message] of [
    [[], /no object/],
    [{ answers: [] }, /no object/],
    [{ answers: {} }, /no answer/],
    [answer(right, { type: 'noul' }), /another type/],
    [answer({ a: 0.5, b: 0.5 }), /of 2 choices, not 3/],
    [answer(JSON.parse('{"a":0.5,"b":0.3,"c":0.2}')), /lacks/],
    [answer(JSON.parse('{"a":0.5,"b":0.3,"__proto__":0.1,"c":0.1}')), /of 4 choices/],
    [answer(JSON.parse('{"a":"0.5","b":0.3,"__proto__":0.2}')), /no finite number/],
    [answer(JSON.parse('{"a":1.3,"b":-0.3,"__proto__":0}')), /not within/],
    [answer(JSON.parse('{"a":0.7,"b":0.3,"__proto__":0.2}')), /sum to 1\.200/],
    [answer(right, {}, { truncated: true }), /did not read the whole/],
    [answer(right, {}, { state_tokens_dropped: 3 }), /did not read the whole/],
    [answer(right, { type: 'refusal' }), /refused to answer/],
  ] as const) {
    t.throws(() => read(body), { name: 'CallFailed', message });
  }
  const list = (pairs: readonly unknown[], type = 'choice') => ({ answers: [{ type, probabilities: pairs }] });
  const pair = (value: unknown, probability: unknown) => ({ value, probability });
  const pairs = [pair('b', 0.3), pair('__proto__', 0.2), pair('a', 0.5)];
  t.deepEqual([...probabilitiesIn(list(pairs), choices, 'decisions')], [0.5, 0.3, 0.2]);
  for (const [body, message] of [
    [{ answers: [] }, /0 answers/],
    [list(pairs.slice(1)), /of 2 choices/],
    [list([...pairs, pair('a', 0)]), /twice/],
    [list([pair('b', 0.3), pair(true, 0.2), pair('a', 0.5)]), /lacks/],
    [{ answers: [{ type: 'refusal' }] }, /refused/],
  ] as const) {
    t.throws(() => probabilitiesIn(body, choices, 'decisions'), { name: 'CallFailed', message });
  }
});

test('what was rounded to 0 gets what rounding can have taken', (t) => {
  const half = (...p: number[]) => halfDigitOf(Float64Array.from(p));
  t.is(half(0.91, 0.09, 0), 0.005);
  t.is(half(1, 0), 0.005);
  t.is(half(0.9, Math.fround(0.1234)), 0.00005);
  t.is(half(0.123456, 0.876544), 5e-7);
  t.is(half(1 / 3, 2 / 3), 5e-10);
  const back = (...p: number[]) => [...logitsOf(Float64Array.from(p))].map((logit) => Math.exp(logit));
  const near = (found: readonly number[], expected: readonly number[]) =>
    t.true(
      found.every((p, i) => Math.abs(p - (expected[i] as number)) < 1e-12),
      `${found}`,
    );
  near(back(0.91, 0.09, 0), [0.91, 0.09, 0.005]);
  near(back(1, 0), [1, 0.005]);
  // Twenty zeros beside one number: together they are no more than its rounding.
  near(back(1, ...new Array(20).fill(0)), [1, ...new Array(20).fill(0.005 / 20)]);
  near(back(1 / 3, 2 / 3, 0), [1 / 3, 2 / 3, 5e-10]);
});

test('orders are turned evenly, and none is asked twice', (t) => {
  t.deepEqual(turnsOf(8, 1), [0]);
  t.deepEqual(turnsOf(8, 2), [0, 4]);
  t.deepEqual(turnsOf(26, 4), [0, 6, 13, 19]);
  t.deepEqual(turnsOf(2, 4), [0, 1]);
  t.deepEqual(turnsOf(3, 4), [0, 1, 2]);
});

test('the options say what is wrong with them', (t) => {
  const sound = { ...OPTIONS, server: { address: '127.0.0.1:1' } };
  const problemsWith = (changed: object) => problemsOf(readSystemOneOptions, { ...sound, ...changed });
  t.deepEqual(problemsWith({}), []);
  for (const [changed, problem] of [
    [{ variant: 'chat' }, 'options.variant must be one of'],
    [{ model: undefined }, 'options.model must be a string'],
    [{ options: 1 }, 'options.options must be a number from 2 to 300'],
    [{ permutations: 3 }, 'options.permutations must be 1, 2 or 4'],
    [{ batch: { rows: 3 } }, 'options.batch is for rows'],
    [{ cuts: undefined }, 'options.cuts must be one of'],
    [{ cuts: 'silently', tokenizer: undefined, bytes_per_token: 4 }, 'options.tokenizer must be a string'],
    [{ templates: { state: '{choice}' } }, 'options.templates.state must mention {input}'],
    [{ templates: { stat: '{input}' } }, 'options.templates.stat is unknown'],
    [{ option: 26 }, 'options.option is unknown'],
  ] as const) {
    const found = problemsWith(changed);
    t.true(found[0]?.startsWith(problem), `${JSON.stringify(changed)}: ${found}`);
  }
});
