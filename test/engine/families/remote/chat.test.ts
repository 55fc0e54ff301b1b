/** Language models behind chat completions: what they are asked, to the letter, and what is made of their answers. */
import test, { type ExecutionContext } from 'ava';
import { ModelUnavailable } from '../../../../src/engine/errors.ts';
import { choiceIn, letterLogitsIn, readChatOptions } from '../../../../src/engine/families/remote/dialects/chat.ts';
import { eventually, job, probabilitiesOf, startEngine, terms } from '../../support/engine.ts';
import { type ChatServed, chatDialect } from '../../support/http-models/chat.ts';
import { createEncoder } from '../../support/http-models/text-models.ts';
import { modelsFolder, TINY } from '../../support/packages.ts';
import {
  CHAT_OPTIONS,
  problemsIn,
  problemsOf,
  type RemoteScene,
  sameDecisions,
  startRemoteScene,
} from '../../support/remote-packages.ts';

/** A scene whose server decides as `tiny` does. */
async function startScene(
  t: ExecutionContext,
  options: object = {},
  served: Partial<ChatServed> = {},
  limits: object = { input_tokens: 40, candidate_tokens: 12, choices: 300 },
): Promise<RemoteScene> {
  const usual = {
    encoder: await createEncoder(),
    model: 'small',
    maxTokens: 2000,
    jointWeight: 0.25,
    temperature: 0.5,
  };
  const source = { options: { ...CHAT_OPTIONS, ...options }, manifest: { limits } };
  return await startRemoteScene(t, chatDialect({ ...usual, ...served }), source);
}

const REQUESTS = [
  { input: 'abc abd', instruction: 'which', choices: ['abc', 'xyz'] },
  {
    input: 'say "a"\\ b\n{choices}',
    instruction: 'which\u2028 {input}',
    choices: ['10', '9', '2', '{letter}', '🙂 c'],
  },
  { input: 'a b c d', instruction: 'q', choices: Array.from({ length: 19 }, (_, i) => `${i * 7}`) },
];

test.serial('the decisions of the same model here, whatever the tokens of the letters', async (t) => {
  const here = await startEngine(t, { modelsDir: await modelsFolder(t, TINY) });
  const { engine } = await startScene(t);
  await sameDecisions(t, here, REQUESTS, { by: engine, within: 1e-6 });
});

test.serial('what is sent: a lettered list in code-unit order, one token, and its alternatives', async (t) => {
  const body = { seed: 7, temperature: null, chat_template_kwargs: { enable_thinking: false } };
  const { engine, server } = await startScene(t, { rotations: 2, body });
  const asked = job({ model: 'remote', input: 'in', instruction: 'what', choices: ['10', '9', '2', 'b', '1'] });
  const from = server.requests.length;
  const first = probabilitiesOf(asked, await engine.score(asked, terms()));
  const made = server.requests.slice(from).map(({ body }) => body as { messages: { content: string }[] });
  const lists = made.map(({ messages }) => messages[1]?.content.split('\n\n')[2]);
  t.deepEqual(lists.toSorted(), ['A. 1\nB. 10\nC. 2\nD. 9\nE. b', 'A. 2\nB. 9\nC. b\nD. 1\nE. 10']);
  const { messages, ...others } = made[0] as { messages: { content: string }[] };
  t.deepEqual(others as object, {
    ...{ model: 'small', max_tokens: 1, logprobs: true, top_logprobs: 20, stream: false },
    ...{ seed: 7, chat_template_kwargs: { enable_thinking: false } },
  });
  t.regex(messages[1]?.content ?? '', /^Text: in\n\nwhat\n\nA\. .*\n\nLetter of the option that fits best:$/s);
  const turned = job({ model: 'remote', input: 'in', instruction: 'what', choices: ['b', '1', '2', '9', '10'] });
  t.deepEqual(probabilitiesOf(turned, await engine.score(turned, terms())), first);
});

test.serial('a model that looks at places is judged by several orders', async (t) => {
  const asked = job({ model: 'remote', choices: Array.from({ length: 8 }, (_, i) => `w${i}`), input: 'zz' });
  const spread = async (rotations: number): Promise<number> => {
    const { engine } = await startScene(t, { rotations }, { placeBias: 1 });
    const all = Object.values(probabilitiesOf(asked, await engine.score(asked, terms())));
    return Math.max(...all) / Math.min(...all);
  };
  const [one, four] = [await spread(1), await spread(4)];
  t.true(four < one / 2, `${four} ${one}`);
});

test.serial('by answers: as sure for every text, and surer where the orders agree', async (t) => {
  const { engine, server } = await startScene(t, { scores: 'choice' }, { logprobs: false });
  for (const { input, choices, instruction } of REQUESTS) {
    const asked = job({ model: 'remote', input, instruction, choices });
    const all = Object.values(probabilitiesOf(asked, await engine.score(asked, terms()))).toSorted((a, b) => b - a);
    const rest = 0.1 / (choices.length - 1);
    t.true(
      all.every((p, i) => Math.abs(p - (i === 0 ? 0.9 : rest)) < 1e-9),
      `${all}`,
    );
  }
  const [{ body: sent } = { body: undefined }] = server.requests.slice(-1);
  const { response_format, ...body } = sent as { readonly response_format: { json_schema: { schema: object } } };
  t.like(response_format.json_schema.schema, { required: ['answer'], additionalProperties: false });
  t.like(body, { max_tokens: 32, temperature: 0, logprobs: undefined } as never);
});

test.serial('what one text makes a model say keeps no other from it, and the log has the reason', async (t) => {
  const { engine, server, status } = await startScene(t);
  const asked = job({ model: 'remote', input: 'abc' });
  const said = {
    choices: [
      { message: { content: 'The' }, logprobs: { content: [{ top_logprobs: [{ token: 'The', logprob: -0.02 }] }] } },
    ],
  };
  server.behaviour.falsify = () => said;
  for (let i = 0; i < 8; i++) await t.throwsAsync(engine.score(asked, terms()), { instanceOf: ModelUnavailable });
  server.behaviour.falsify = (body) => body;
  t.is(status(), 'ready');
  t.is((await engine.score(asked, terms())).kind, 'scored');
  const told = problemsIn(engine, 'an inference server failed at a decision');
  t.regex(told, /the letters of the choices have 0\.00 of the probability, less than 0\.5/);
  t.notRegex(told, /The\b/);
});

test.serial('tokens are counted as the server counts them', async (t) => {
  const { engine, server } = await startScene(t);
  const usedBy = () => engine.stats().inference[0]?.tokens ?? { in: 0, out: 0 };
  const ofLoad = server.requests.length;
  await eventually(() => usedBy().out === ofLoad);
  const before = usedBy();
  await engine.score(job({ model: 'remote', input: 'abc' }), terms());
  await eventually(() => usedBy().out > before.out);
  t.is(usedBy().out, before.out + 1);
  t.true(usedBy().in > before.in + 20);
});

/** An answer with these first tokens. */
const answerWith = (tokens: Readonly<Record<string, number>>, beside: object = {}) => {
  const top_logprobs = Object.entries(tokens).map(([token, p]) => ({ token, logprob: p === 0 ? -9999 : Math.log(p) }));
  return {
    choices: [
      { message: { content: 'A' }, logprobs: { content: [{ token: 'A', logprob: 0, top_logprobs }] }, ...beside },
    ],
  };
};
const probabilitiesIn = (tokens: Readonly<Record<string, number>>, count: number): readonly number[] =>
  [...letterLogitsIn(answerWith(tokens), count).logits].map(Math.exp);
const near = (t: ExecutionContext, found: readonly number[], expected: readonly number[]) =>
  t.true(
    found.length === expected.length && found.every((p, i) => Math.abs(p - (expected[i] as number)) < 1e-9),
    `${found}`,
  );

test('a letter is the sum of its forms, and no word is a letter', (t) => {
  const forms = {
    A: 0.2,
    ' A': 0.1,
    a: 0.05,
    '▁a': 0.05,
    ĠA: 0.02,
    '**A': 0.02,
    '(A': 0.02,
    'A)': 0.02,
    'A.': 0.01,
    '\nA': 0.01,
  };
  near(t, probabilitiesIn({ ...forms, '"b"': 0.3, Ａ: 0.1, ' C:': 0.05 }, 3), [0.6, 0.3, 0.05]);
  // What is no letter of the three takes part in nothing.
  const others = {
    An: 0.1,
    D: 0.1,
    '<s>': 0.1,
    "'s": 0.01,
    'A A': 0.01,
    AB: 0.01,
    А: 0.01,
    '': 0.01,
    [`${' '.repeat(20)}A`]: 0.01,
  };
  near(t, probabilitiesIn({ A: 0.4, B: 0.2, C: 0.04, ...others }, 3), [0.4, 0.2, 0.04]);
  // The ninth letter is J: a refusal begins with the word I.
  t.throws(() => probabilitiesIn({ I: 0.9, J: 0.1 }, 20), { message: /the letters of the choices have 0\.10/ });
});

test('a token that is missing gets what is left, and never more than the least that is there', (t) => {
  near(t, probabilitiesIn({ A: 0.7, The: 0.1 }, 3), [0.7, 0.1, 0.1]);
  near(t, probabilitiesIn({ A: 0.7, B: 0.01, The: 0.1 }, 3), [0.7, 0.01, 0.01]);
  near(t, probabilitiesIn({ A: 0.9, B: 0.08 }, 4), [0.9, 0.08, 0.01, 0.01]);
  near(t, probabilitiesIn({ A: 0.98, B: 0.02, C: 0 }, 3), [0.98, 0.02, 2 ** -25]);
  const { doubt, logits } = letterLogitsIn(answerWith({ A: 1, B: 0, C: 0 }), 3);
  t.regex(doubt ?? '', /only the sampled token has a probability/);
  t.true(logits.every(Number.isFinite));
});

test('a token that is there twice counts once', (t) => {
  const [token] = answerWith({ A: 0.6 }).choices[0]?.logprobs.content[0]?.top_logprobs ?? [];
  const list = [token, token, { token: 'B', logprob: Math.log(0.3) }];
  const answer = { choices: [{ message: {}, logprobs: { content: [{ top_logprobs: list }] } }] };
  near(t, [...letterLogitsIn(answer, 2).logits].map(Math.exp), [0.6, 0.3]);
});

test('an answer is a letter of a choice, or it is none', (t) => {
  const place = (content: unknown) => {
    const { logits } = choiceIn({ choices: [{ message: { content } }] }, 3);
    return logits.indexOf(Math.max(...logits));
  };
  for (const said of ['{"answer":"B"}', ' {"answer": "b"}\n', 'B', ' b.', '**B**']) t.is(place(said), 1, said);
  for (const said of ['{"answer":"D"}', 'B or C', 'BC', '', '{"answer":["B"]}', 'Because', null]) {
    t.throws(() => place(said), { message: 'the answer is none of the letters of the choices' }, String(said));
  }
});

test('the options say what is wrong with them', (t) => {
  const { shortlist: _, ...usual } = CHAT_OPTIONS;
  const sound = { ...usual, server: { address: '127.0.0.1:1' } };
  const problemsWith = (changed: object) => problemsOf(readChatOptions, { ...sound, ...changed });
  t.deepEqual(problemsWith({}), []);
  t.deepEqual(problemsWith({ model: undefined, scores: 'choice', max_tokens_field: 'max_completion_tokens' }), []);
  const { templates } = usual as { readonly templates?: object };
  for (const [changed, problem] of [
    [{ scores: 'probability' }, 'options.scores must be one of'],
    [{ options: 21 }, 'options.options must be a number from 2 to 20'],
    [{ rotations: 3 }, 'options.rotations must be 1, 2 or 4'],
    [{ batch: { rows: 3 } }, 'options.batch is for rows'],
    [{ cuts: 'silently', tokenizer: undefined, bytes_per_token: 4 }, 'options.tokenizer must be a string'],
    [{ templates: undefined }, 'options.templates must be an object'],
    [{ templates: { ...templates, user: '{input}' } }, 'options.templates.user must mention {choices}'],
    [{ templates: { ...templates, user: '{choices}' } }, 'options.templates.user must mention {input}'],
    [{ templates: { ...templates, system: '{letter}' } }, 'options.templates.user must not mention {letter}'],
    [{ templates: { ...templates, choice: '{choice}' } }, 'options.templates.choice must mention {letter}'],
    [{ templates: { ...templates, assistant: 'A' } }, 'options.templates.assistant is unknown'],
    [{ max_tokens_field: 'tokens' }, 'options.max_tokens_field must be one of'],
    [{ body: [] }, 'options.body must be an object'],
    [{ body: { messages: [] } }, 'options.body.messages cannot be changed'],
    [{ body: { n: 2 } }, 'options.body.n cannot be changed'],
    [{ server: { address: '127.0.0.1:1', token_header: 'host' } }, 'options.server.token_header must match'],
    [{ permutations: 2 }, 'options.permutations is unknown'],
  ] as const) {
    const found = problemsWith(changed);
    t.true(found[0]?.startsWith(problem), `${JSON.stringify(changed)}: ${found}`);
  }
});
