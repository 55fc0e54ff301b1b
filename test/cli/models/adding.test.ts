/**
 * `umpire models add` against servers on real sockets that speak as the real ones do: the package that each preset
 * writes, and that its check finds it sound.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { probabilitiesOf } from '../../engine/support/http-models/system-one.ts';
import { createEncoder } from '../../engine/support/http-models/text-models.ts';
import { startInferenceServer } from '../../engine/support/inference-server.ts';
import { onnxModel } from '../../engine/support/onnx.ts';
import { encoderGraph, entailmentGraph, tokenId, writePackage } from '../../engine/support/packages.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { chatServer, DECIDER, decisionServer, encoderServer, rerankServer, sceneOf } from '../../support/models-add.ts';
import { runUmpire } from '../../support/terminal.ts';

test.serial('of text-embeddings-inference: what the preset and usual limits write, and the check of it', async (t) => {
  const server = await rerankServer(t, { server: 'tei' });
  const { modelsDir, add, manifest } = await sceneOf(t);
  const { status, out, err } = await add(server, '--server', 'tei');
  t.is(status, 0, err);
  const { family, limits, files, options } = await manifest();
  t.deepEqual([family, files], ['remote', {}]);
  t.deepEqual(limits, { input_tokens: 36, candidate_tokens: 12, choices: 20 });
  t.deepEqual(options, {
    dialect: 'rerank',
    shape: 'texts',
    scores: 'logit',
    raw: 'raw_scores',
    truncate: 'refuse',
    templates: { query: '{instruction}\n{input}', document: '{choice}' },
    server: { address: server.address },
    cuts: 'refuses',
    bytes_per_token: 4,
    temperature: 1,
  });
  t.regex(out, /^far@r1 is in .*\n {2}rerank as tei speaks it: \{"cuts":"refuses","shape":"texts",.*\}\n/);
  t.regex(out, / {2}temperature 1, a usual one: --examples fits it\n/);
  t.regex(out, /16 tokens, 8 choices: [\d.]+ ms with its inference server/);
  t.deepEqual(await readdir(modelsDir), ['far']);

  // It is a package like any other, and is never written over.
  const check = await runUmpire(['models', 'check'], { env: { UMPIRE_MODELS_DIR: modelsDir } });
  t.regex(check.out, /^far@r1: sound/);
  const before = await manifest();
  const again = await add(server, '--server', 'tei', '--temperature', '2');
  t.is(again.status, 1);
  t.regex(again.err, /far\/r1 exists; a change is a new revision/);
  t.deepEqual(await manifest(), before);
});

type Start = (t: ExecutionContext) => Promise<{ readonly address: string }>;

const metadata = (inputs: readonly string[], output: string, width: number) => ({
  inputs: inputs.map((name) => ({ name, datatype: 'INT64', shape: [-1n, -1n] })),
  outputs: [{ name: output, datatype: 'FP32', shape: [-1n, BigInt(width)] }],
});
const INPUTS = ['input_ids', 'attention_mask', 'token_type_ids'];
/** A cross-encoder as it is exported: its logit is the share of tokens that are `a`. */
const exportedGraph = () =>
  onnxModel({
    inputs: ['attention_mask'],
    constants: [
      { name: 'table', dims: [128, 1], values: new Float32Array(128).fill(1, tokenId('a'), tokenId('a') + 1) },
    ],
    operators: [
      { type: 'Mul', inputs: ['input_ids', 'attention_mask'], output: 'masked' },
      { type: 'Gather', inputs: ['table', 'masked'], output: 'tokens' },
      { type: 'ReduceMean', inputs: ['tokens'], output: 'logits', attributes: { axes: [1], keepdims: 0 } },
    ],
    output: { name: 'logits', width: 1 },
  });
const exported: Start = (t) =>
  startInferenceServer(t, {
    graph: exportedGraph(),
    output: 'logits',
    metadata: metadata(INPUTS.slice(0, 2), 'logits', 1),
  });

const AZURE = { path: '/openai/v1/chat/completions', limit: 'max_completion_tokens' };
/** Each way in which presets differ that no test below adds, and a server that is as it says. */
const SERVED: readonly (readonly [server: string, dialect: string, start: Start, options: object])[] = [
  ['llama.cpp', 'rerank', (t) => rerankServer(t, { server: 'llama.cpp' }), { shape: 'documents', raw: 'none' }],
  ['sglang', 'rerank', (t) => rerankServer(t, { server: 'sglang' }), { scores: 'probability', cuts: 'refuses' }],
  ['cohere', 'rerank', (t) => rerankServer(t, { server: 'cohere' }), { scores: 'probability', cuts: 'silently' }],
  [
    'infinity',
    'embeddings',
    (t) => encoderServer(t, { path: '/embeddings', tooLong: undefined }),
    { cuts: 'silently' },
  ],
  ['vllm', 'embeddings', (t) => encoderServer(t, { path: '/v1/embeddings' }), { cuts: 'refuses' }],
  ['vllm', 'system-one', (t) => decisionServer(t, { options: 26 }), { options: 26 }],
  ['openai', 'system-one', (t) => decisionServer(t, { variant: 'decisions', options: 255 }), { options: 255 }],
  ['ollama', 'chat', (t) => chatServer(t), { cuts: 'silently', options: 20 }],
  ['azure', 'chat', (t) => chatServer(t, AZURE), { cuts: 'refuses', options: 20 }],
  ['mlserver', 'open-inference', exported, { returns: 'logit' }],
];
for (const [server, dialect, start, expected] of SERVED) {
  test.serial(`of ${server}, in the dialect ${dialect}`, async (t) => {
    const { add, manifest, tokenizer } = await sceneOf(t);
    const models = { rerank: 'ranker', embeddings: 'encoder', 'system-one': 'nimble', chat: 'nimble' };
    const model = models[dialect as keyof typeof models] ?? 'exported';
    const common = ['--server', server, '--dialect', dialect, '--model', model];
    const { status, err } = await add(await start(t), ...common, '--tokenizer', tokenizer);
    t.is(status, 0, err);
    t.like((await manifest()).options, { dialect, model, ...expected });
  });
}

test.serial(
  'of a server that cuts: not without a tokenizer and limits, and with them its package counts',
  async (t) => {
    const server = await rerankServer(t, { server: 'infinity' });
    const { modelsDir, add, manifest, tokenizer } = await sceneOf(t);
    const refused = await add(server, '--server', 'infinity');
    t.is(refused.status, 1);
    t.regex(refused.err, /the server cuts a text that is too long and does not say so.*: --tokenizer FILE is needed/);
    const unlimited = await add(server, '--server', 'infinity', '--tokenizer', tokenizer, '--input-tokens', '30');
    t.regex(unlimited.err, /--input-tokens N and --candidate-tokens N are needed/);
    t.deepEqual(await readdir(modelsDir), []);

    const { status, err } = await add(server, '--server', 'infinity', '--tokenizer', tokenizer);
    t.is(status, 0, err);
    const { files, options } = await manifest();
    t.deepEqual(Object.keys(files), ['server-tokenizer.json']);
    t.like(options, { cuts: 'silently', tokenizer: 'server-tokenizer.json', raw: 'raw_scores' });
  },
);

test.serial(
  'of an encoder: the temperature is fitted to labelled examples, and what the operator lays over holds',
  async (t) => {
    const server = await encoderServer(t, { models: { 'e5-query': '', 'e5-passage': '' } });
    const { write, add, manifest } = await sceneOf(t);
    const examples = Array.from({ length: 24 }, (_, i) => ({
      input: `${['abc', 'xyz', 'mno'][i % 3]} ${'defghijkl'.slice(i % 7)} ${i}`,
      label: ['abc', 'xyz', 'mno'][(i % 8 === 0 ? i + 1 : i) % 3],
    }));
    const labelled = await write('labels.jsonl', examples.map((each) => `${JSON.stringify(each)}\n`).join(''));
    const own = { input_model: 'e5-query', choice_model: 'e5-passage', batch: { independent: true }, cuts: 'refuses' };
    const args = ['--options', await write('own.json', own), '--examples', labelled, '--instruction', 'which'];
    // No preset is needed where the options say all.
    const { status, out, err } = await add(server, '--dialect', 'embeddings', ...args);
    t.is(status, 0, err);
    const { options } = await manifest();
    t.like(options, { dialect: 'embeddings', joint_weight: 0.2, ...own });
    t.true(options.temperature > 0.01 && options.temperature < 1, `${options.temperature}`);
    t.notRegex(out, /a usual one/);
    t.regex(out, new RegExp(`temperature ${options.temperature}, fitted on 24 examples:\n {4}right answers: `));
  },
);

test.serial('of a decision server: a local model for more choices than it takes', async (t) => {
  const server = await decisionServer(t);
  const { modelsDir, write, add, manifest } = await sceneOf(t);
  const local = await writePackage(modelsDir, { options: { temperature: 0.2 } });
  await writeFile(join(local, 'LICENSE'), 'words');
  const asked = ['--server', 'ollama', '--model', 'nimble', '--shortlist'];
  t.regex((await add(server, ...asked, 'nobody')).err, /--shortlist: there is no package 'nobody' in /);
  const { status, out, err } = await add(server, ...asked, 'tiny');
  t.is(status, 0, err);
  const { files, options, limits } = await manifest();
  t.is(limits.choices, 300);
  t.like(options.shortlist, { family: 'bi-encoder', limits: { choices: 300 }, options: { temperature: 0.2 } });
  t.deepEqual(Object.keys(files).toSorted(), ['model.onnx', 'tokenizer.json']);
  t.deepEqual((await readdir(join(modelsDir, 'far', 'r1'))).toSorted(), [
    ...['LICENSE', 'model.json', 'model.onnx', 'tokenizer.json'],
  ]);
  t.regex(out, /it is sent 26 choices at a time, which tiny picks where there are more\n/);

  // Three hundred choices are decided by both.
  const texts = Array.from({ length: 300 }, (_, i) => `${'abcdefghij'[i % 10]}${i}`);
  const [choices, examples] = [
    await write('choices.txt', texts.join('\n')),
    await write('examples.jsonl', `${JSON.stringify({ input: 'b41', instruction: 'which', label: 'b41' })}\n`),
  ];
  const args = ['evaluate', '--model', 'far', '--choices', choices, '--json', examples];
  const evaluated = await runUmpire(args, { env: { UMPIRE_MODELS_DIR: modelsDir } });
  t.is(evaluated.status, 0, evaluated.err);
  t.like(JSON.parse(evaluated.out), { model: 'far@r1', examples: 1 });
});

test.serial(
  'of a chat server: by answers, the temperature is fitted so that they are as sure as they are right',
  async (t) => {
    const server = await chatServer(t, { logprobs: false });
    const { write, add, manifest } = await sceneOf(t);
    const asked = ['--server', 'litellm', '--model', 'nimble'];
    const unlisted = await add(server, ...asked);
    t.regex(unlisted.err, /the answer has no log-probabilities; "scores": "choice" does without them/);
    // Of 96 answers 72 are right.
    const [options, decider] = [['abc', 'mno', 'xyz'], { encoder: await createEncoder(), ...DECIDER }];
    const examples = await Promise.all(
      Array.from({ length: 96 }, async (_, i) => {
        const question = { state: `${'abcmnoxyz'[i % 9]} ${i}`, instructions: 'which', options };
        const probabilities = await probabilitiesOf(decider, question);
        const best = probabilities.indexOf(Math.max(...probabilities));
        return { input: question.state, instruction: 'which', label: options[(i % 4 === 0 ? best + 1 : best) % 3] };
      }),
    );
    const labelled = await write('labels.jsonl', examples.map((each) => `${JSON.stringify(each)}\n`).join(''));
    const own = await write('own.json', { scores: 'choice' });
    const { status, out, err } = await add(server, ...asked, '--options', own, '--examples', labelled);
    t.is(status, 0, err);
    const { temperature } = (await manifest()).options;
    const confidence = 18 ** (1 / temperature) / (18 ** (1 / temperature) + 2);
    t.true(Math.abs(confidence - 0.75) < 0.02, `${temperature} ${out}`);
  },
);

test.serial('over TLS, with a token: the package says where both are, and holds neither', async (t) => {
  const { cert, key, certFile } = makeCertificate('ranker');
  const server = await rerankServer(t, { server: 'vllm' }, { tls: { cert, key } });
  server.behaviour.token = 'the-secret-of-the-test';
  const { modelsDir, write, add, manifest } = await sceneOf(t);
  const token = await write('token', 'the-secret-of-the-test\n');
  const args = [`https://${server.address}/v1/rerank`, '--server', 'vllm', '--token-file', token] as const;
  const untrusted = await add(...args);
  t.regex(untrusted.err, /cannot be asked: .*SELF_SIGNED_CERT/);
  const { status, out, err } = await add(...args, '--ca', certFile);
  t.is(status, 0, err);
  t.deepEqual((await manifest()).options.server, {
    address: server.address,
    path: '/v1/rerank',
    tls: { ca: certFile },
    token_file: token,
  });
  const text = await readFile(join(modelsDir, 'far', 'r1', 'model.json'), 'utf8');
  t.notRegex(out + err + text, /the-secret-of-the-test/);
});

test.serial('of the Open Inference Protocol: another model is told from what the server declares', async (t) => {
  const { add, manifest, write, tokenizer } = await sceneOf(t);
  const common = ['--server', 'triton', '--model', 'encoder', '--tokenizer', tokenizer];
  const encoder = await startInferenceServer(t, {
    ...{ graph: encoderGraph(), output: 'embedding', metadata: metadata(['input_ids'], 'embedding', 8) },
  });
  const unsaid = await add(encoder, ...common);
  t.regex(unsaid.err, /the server's model has no input "attention_mask", but "input_ids"/);
  t.regex(unsaid.err, /the server's model has no output "logits", but "embedding"/);
  const tensor = (name: string, holds: string) => ({ name, datatype: 'INT64', shape: [-1, -1], holds });
  const inputs = [tensor('input_ids', 'ids')];
  const vectors = { inputs, output: { name: 'embedding', shape: [-1, 8] }, returns: 'embedding' };
  const own = await write('vectors.json', vectors);
  t.like(await add(encoder, ...common, '--options', own), { status: 0 });
  const [cls, sep] = [tokenId('[CLS]'), tokenId('[SEP]')];
  const { options } = await manifest();
  t.deepEqual(options.rows.joint, [cls, '{instruction}', sep, '{input}', sep]);
  t.is(options.temperature, 0.05);
});

test.serial('of the Open Inference Protocol with classes: the operator says which column is the logit', async (t) => {
  const served = { graph: entailmentGraph('a'), output: 'logits', metadata: metadata(INPUTS, 'logits', 3) };
  const server = await startInferenceServer(t, served);
  const { write, add, tokenizer } = await sceneOf(t);
  const args = ['--server', 'kserve', '--model', 'encoder', '--tokenizer', tokenizer];
  const unsaid = await add(server, ...args);
  t.regex(unsaid.err, /the output "logits" has the shape \[-1,3\] at the server, not \[-1,1\]/);
  const inputs = INPUTS.map((name, i) => {
    return { name, datatype: 'INT64', shape: [-1, -1], holds: ['ids', 'mask', 'types'][i] };
  });
  const own = await write('own.json', { inputs, output: { shape: [-1, 3] }, column: 0, minus: 2 });
  const { status, err } = await add(server, ...args, '--options', own);
  t.is(status, 0, err);
});
