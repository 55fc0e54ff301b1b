/**
 * What `umpire models add` says where it cannot make a package, and what to do; nothing is left then. And `umpire
 * models pack`: from an export to a package that is listed and checked.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { laidOver } from '../../../src/engine/package-tools/pack.ts';
import { modelsFolder, writeExport, writePackage } from '../../engine/support/packages.ts';
import { writeInferencePackage } from '../../engine/support/remote-packages.ts';
import { chatServer, decisionServer, encoderServer, rerankServer, sceneOf } from '../../support/models-add.ts';
import { runUmpire } from '../../support/terminal.ts';

test.serial('a server that is not as the preset says is found out, and nothing is left', async (t) => {
  const ranker = await rerankServer(t, { server: 'llama.cpp' });
  const cutting = await encoderServer(t, { tooLong: undefined });
  const small = await decisionServer(t, { options: 10 });
  const forgetful = await chatServer(t, { maxTokens: 120, tooLong: 'cuts' });
  const { modelsDir, add } = await sceneOf(t);
  for (const [server, args, problem] of [
    [ranker, '--server tei', /POST \/rerank was answered with 404: there is no such path/],
    [ranker, '--server sglang', /a score is no probability/],
    [ranker, '--server vllm --model nobody', /The model nobody does not exist/],
    [ranker, '--server vllm --input-tokens 300', /candidate_tokens are more than the server reads: .* of 64/],
    [
      cutting,
      '--server openai --dialect embeddings --model encoder',
      /the server cuts without saying so: of 136 words/,
    ],
    [forgetful, '--server vllm --dialect chat --model nimble', /the server cuts without saying so: of 136 words/],
    [forgetful, '--server openai --dialect chat --model nimble', /Unsupported parameter: use 'max_tokens'/],
    [small, '--server vllm --dialect system-one --model nimble', /Dictionary should have at most 10 items/],
  ] as const) {
    const { status, err } = await add(server, ...args.split(' '));
    t.is(status, 1, args);
    t.regex(err, problem, args);
    t.regex(err, /what the package said:\n {2}.* as .* speaks it: \{/, args);
  }
  ranker.behaviour.falsify = (body: { results: object[] }) => ({
    results: body.results.map((result, i) => ({ ...result, relevance_score: i === 0 ? 1 : 0 })),
  });
  const { err } = await add(ranker, '--server', 'localai');
  t.regex(err, /the server's scores are saturated: 2 of the canary's 2 are exactly 0 or 1/);
  t.deepEqual(await readdir(modelsDir), []);
});

test.serial('a server that is away or wants another token: each says what to do', async (t) => {
  const ranker = await rerankServer(t, { server: 'vllm' });
  const { modelsDir, write, add } = await sceneOf(t);
  const wrong = await write('token', 'not-the-token\n');
  ranker.behaviour.token = 'the-token';
  const told = /POST \/v1\/rerank was answered with 401: the token was refused, or there is none/;
  t.regex((await add(ranker, '--server', 'vllm')).err, told);
  const refused = await add(ranker, '--server', 'vllm', '--token-file', wrong);
  t.is(refused.status, 1);
  t.regex(refused.err, told);
  t.notRegex(refused.err, /not-the-token/);
  const unset = await add(ranker, '--server', 'vllm', '--token-env', 'UMPIRE_TOKEN_OF_NOBODY');
  t.regex(unset.err, /server.token_env: the variable UMPIRE_TOKEN_OF_NOBODY is not set/);

  await ranker.kill();
  const away = await add(ranker, '--server', 'vllm');
  t.is(away.status, 1);
  t.regex(away.err, /cannot be asked: the connection failed \(ECONNREFUSED\)/);
  t.regex(away.err, /is it running, is that its address, and does it want https or a token\?/);
  t.deepEqual(await readdir(modelsDir), []);
});

test.serial('what cannot be used is told of before the server is asked', async (t) => {
  const server = await rerankServer(t, {});
  const { modelsDir, add, write } = await sceneOf(t);
  const tei = ['--server', 'tei'] as const;
  await writePackage(modelsDir, { manifest: { family: 'remote', files: {}, options: {} } });
  t.regex((await add(server, ...tei, '--shortlist', 'tiny')).err, /'tiny' is no local model; one is needed/);
  const folder = await writePackage(modelsDir, { id: 'torn' });
  await writeFile(join(folder, 'tokenizer.json'), 'x'.repeat((await readFile(join(folder, 'tokenizer.json'))).length));
  t.regex((await add(server, ...tei, '--shortlist', 'torn')).err, /--shortlist: 'torn' is broken: tokenizer.json /);
  const few = await write('few.jsonl', '{"input":"abc","instruction":"w","label":"a"}\n{"input":"b"}\n');
  const { err } = await add(server, ...tei, '--examples', few);
  t.regex(err, /line 2: instruction, label must be a text that is not empty/);
  const spoken = await add(server, '--server', 'ollama', '--dialect', 'rerank');
  t.regex(
    spoken.err,
    /--dialect: ollama is known to speak system-one, embeddings, chat; without --server, --options says how/,
  );
  const bare = await add(server, '--server', 'triton', '--model', 'm');
  t.regex(bare.err, /--tokenizer FILE is needed, the model's tokenizer.json: rows are made here/);
  const unsaid = await add(server, '--dialect', 'rerank');
  t.regex(unsaid.err, /options\.shape must be one of/);
  t.is(server.requests.length, 0);
});

const AT = ['far@r1', '--url', 'http://x'] as const;
for (const [args, problem] of [
  [['far'], /'far' is not MODEL@REVISION/],
  [['far@r1'], /--url URL is needed/],
  [['far@r1', '--url', 'ftp://x', '--server', 'tei'], /--url: must be http:\/\/… or https:\/\/…/],
  [AT, /--server SERVER or --dialect DIALECT is needed/],
  [[...AT, '--server', 'chat'], /--server must be one of tei, infinity, vllm, /],
  [[...AT, '--dialect', 'talk'], /--dialect must be one of open-inference, rerank, embeddings, system-one, chat/],
  [['far@r1', '--url', 'http://u:p@x', '--server', 'tei'], /--url: no credentials/],
  [[...AT, '--server', 'tei', '--ca', 'y'], /--ca: is for https/],
  [[...AT, '--server', 'tei', '--token-file', 'a', '--token-env', 'b'], /--token-file or --token-env, not both/],
  [[...AT, '--server', 'tei', '--examples', 'e', '--temperature', '1'], /--examples or --temperature, not both/],
] as const) {
  test(`bad arguments: ${args.join(' ')}`, async (t) => {
    const { status, err } = await runUmpire(['models', 'add', ...args]);
    t.is(status, 2, err);
    t.regex(err, problem);
  });
}

test('objects are laid over one another field by field, and nothing else is', (t) => {
  const under = { a: { b: 1, c: [1, 2] }, d: 1, f: 3 };
  t.deepEqual(laidOver(under, { a: { c: [3] }, d: { e: 2 }, f: null }), { a: { b: 1, c: [3] }, d: { e: 2 } });
  t.deepEqual(laidOver({}, JSON.parse('{"__proto__": {"x": 1}}')) as object, JSON.parse('{"__proto__": {"x": 1}}'));
  t.false('x' in {});
});

const umpire = (env: Record<string, string>, ...args: readonly string[]) => runUmpire(args, { env });

test('an export becomes a package that list and check agree about', async (t) => {
  const [exported, models] = [await modelsFolder(t), await modelsFolder(t)];
  const env = { UMPIRE_MODELS_DIR: models };
  const canary = { input: 'abcabc', instruction: 'abc', choices: ['xyz', 'abc'], choice: 'abc' };
  await writeExport(exported, { 'canary.json': JSON.stringify(canary) });
  const options = [
    '--canary',
    join(exported, 'canary.json'),
    ...'--temperature 0.5 --input-tokens 40 --default'.split(' '),
  ];
  const packed = await umpire(env, 'models', 'pack', exported, 'mine@r1', ...options);
  t.is(packed.status, 0, packed.err);
  t.regex(
    packed.out,
    /^mine@r1 is in .*\n {2}output last_hidden_state, pooling mean\n {2}limits: 40 input tokens, 300 choices of 61 tokens/,
  );
  t.regex(packed.out, /taken out of the tokenizer: \[UNK\] \[CLS\] \[SEP\]/);
  t.regex(packed.out, /an engine with this package alone takes [1-9]\d+ MiB$/m);
  const manifest = JSON.parse(await readFile(join(models, 'mine', 'r1', 'model.json'), 'utf8'));
  t.like(manifest, { default: true, owned_by: 'local', options: { temperature: 0.5, joint_weight: 0.2 } });
  t.regex((await umpire(env, 'models', 'list')).out, /mine +r1 +yes .* complete /);
  t.regex((await umpire(env, 'models', 'check')).out, /^mine@r1: sound/);
});

test('a folder that is no export ends with status 1', async (t) => {
  const env = { UMPIRE_MODELS_DIR: await modelsFolder(t) };
  const { status, err } = await umpire(env, 'models', 'pack', '/nowhere', 'a@b');
  t.is(status, 1);
  t.regex(err, /\/nowhere has neither model.onnx nor onnx\/model.onnx/);
});

test('a package whose inference server is away is not called broken, and a name that nobody bears is', async (t) => {
  const models = await modelsFolder(t);
  await writeInferencePackage(models, '127.0.0.1:1');
  const env = { UMPIRE_MODELS_DIR: models, UMPIRE_INFERENCE_SERVERS: 'remote=127.0.0.1:1,remoet=127.0.0.1:1' };
  const { status, out, err } = await umpire(env, 'models', 'check');
  t.is(status, 1);
  t.regex(
    out,
    /^remote@r1: cannot be told, its inference server is away\n {2}the inference server at 127.0.0.1:1 cannot be asked/,
  );
  t.notRegex(out, /broken/);
  t.regex(err, /UMPIRE_INFERENCE_SERVERS: there is no package 'remoet'/);
});
