/** `umpire models add` against servers on real sockets that speak as the real ones do: what it finds, and what it says where it cannot. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { embeddingsDialect } from '../engine/support/http-models/embeddings.ts';
import { type RerankServed, rerankDialect } from '../engine/support/http-models/rerank.ts';
import { type HttpModelServer, startHttpModelServer } from '../engine/support/http-models/server.ts';
import { systemOneDialect } from '../engine/support/http-models/system-one.ts';
import { createEncoder, createPairScorer } from '../engine/support/http-models/text-models.ts';
import { startInferenceServer } from '../engine/support/inference-server.ts';
import {
  encoderGraph,
  entailmentGraph,
  modelsFolder,
  publishedTokenizer,
  tokenId,
  writePackage,
} from '../engine/support/packages.ts';
import { type Ran, runUmpire } from '../support/terminal.ts';

const canary = { input: 'abcabc', instruction: 'abc', choices: ['xyz', 'abc'], choice: 'abc' };

/** A folder of models, files that commands read, and the command. */
async function sceneOf(t: ExecutionContext) {
  const [modelsDir, files] = [await modelsFolder(t), await modelsFolder(t)];
  const write = async (name: string, content: unknown): Promise<string> => {
    await writeFile(join(files, name), typeof content === 'string' ? content : JSON.stringify(content));
    return join(files, name);
  };
  const canaryFile = await write('canary.json', canary);
  const add = (server: Pick<HttpModelServer, 'address'> | string, dialect: string, ...more: string[]): Promise<Ran> => {
    const url = typeof server === 'string' ? server : `http://${server.address}`;
    const common = ['--url', url, '--dialect', dialect, '--canary', canaryFile];
    // A machine with much to do takes long for the largest request that 300 choices allow.
    const choices = more.includes('--shortlist') ? [] : ['--choices', '20'];
    const args = ['models', 'add', 'far@r1', ...common, ...choices, ...more];
    return runUmpire(args, { env: { UMPIRE_MODELS_DIR: modelsDir } });
  };
  const manifest = async () => JSON.parse(await readFile(join(modelsDir, 'far', 'r1', 'model.json'), 'utf8'));
  return { modelsDir, write, add, manifest };
}

async function rerankServer(t: ExecutionContext, served: Partial<RerankServed>): Promise<HttpModelServer> {
  const scorer = await createPairScorer('a');
  return await startHttpModelServer(
    t,
    rerankDialect({ server: 'tei', scorer, model: 'ranker', maxTokens: 64, ...served }),
  );
}

const encoderServer = async (t: ExecutionContext, served: Partial<Parameters<typeof embeddingsDialect>[0]> = {}) =>
  await startHttpModelServer(
    t,
    embeddingsDialect({
      encoder: await createEncoder(),
      models: { encoder: '' },
      maxTokens: 64,
      tooLong: 'vllm',
      ...served,
    }),
  );

/** Rows of a package: the most that the server takes, or half of it and so on where the machine has much to do. */
function rowsWithin(t: ExecutionContext, { batch }: { batch: { rows: number } }, most: number): number {
  t.true(Number.isInteger(Math.log2(most / batch.rows)) && batch.rows <= most, `${batch.rows}`);
  return batch.rows;
}

test.serial(
  'of text-embeddings-inference: its shape, its switch, its limits, and what it is told about long texts',
  async (t) => {
    const server = await rerankServer(t, { server: 'tei' });
    const { modelsDir, add, manifest } = await sceneOf(t);
    const { status, out, err } = await add(server, 'rerank');
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
      batch: { rows: rowsWithin(t, options, 32) },
      server: { address: server.address, path: '/rerank' },
      cuts: 'refuses',
      bytes_per_token: 4,
      temperature: 1,
    });
    t.regex(out, /^far@r1 is in .*\n {2}model ranker, revision 1{40}, server version 1.9.0\n/);
    t.regex(
      out,
      / {2}POST \/rerank in the shape "texts", \d+ documents a request\n {2}scores: logits, by raw_scores\n/,
    );
    t.regex(out, / {2}a text that is too long is refused, at 64 tokens as it says\n/);
    t.regex(out, / {2}temperature 1, a usual one: --examples fits it\n/);
    t.regex(out, /16 tokens, 8 choices: [\d.]+ ms with its inference server/);
    t.deepEqual(await readdir(modelsDir), ['far']);

    // It is a package like any other, and is never written over.
    const check = await runUmpire(['models', 'check'], { env: { UMPIRE_MODELS_DIR: modelsDir } });
    t.regex(check.out, /^far@r1: sound/);
    const before = await manifest();
    const again = await add(server, 'rerank', '--temperature', '2');
    t.is(again.status, 1);
    t.regex(again.err, /far\/r1 exists; a change is a new revision/);
    t.deepEqual(await manifest(), before);
  },
);

for (const [server, options, lines] of [
  [
    'vllm',
    { shape: 'documents', raw: 'use_activation', scores: 'logit', cuts: 'refuses' },
    /POST \/v1\/rerank in the shape "documents".*\n.*by use_activation/,
  ],
  [
    'llama.cpp',
    { shape: 'documents', raw: 'none', scores: 'logit', cuts: 'refuses' },
    /scores: logits without being asked for/,
  ],
  [
    'sglang',
    { shape: 'documents', scores: 'probability', cuts: 'refuses' },
    /scores: probabilities; neither raw_scores nor use_activation gives logits/,
  ],
] as const) {
  test.serial(`of a reranker that speaks as ${server}`, async (t) => {
    const { add, manifest } = await sceneOf(t);
    const { status, out, err } = await add(await rerankServer(t, { server }), 'rerank');
    t.is(status, 0, err);
    t.like((await manifest()).options, options);
    t.regex(out, lines);
  });
}

test.serial('of a server that cuts: not without a tokenizer, and with one its package counts', async (t) => {
  const server = await rerankServer(t, { server: 'infinity' });
  const { modelsDir, write, add, manifest } = await sceneOf(t);
  const refused = await add(server, 'rerank');
  t.is(refused.status, 1);
  t.regex(
    refused.err,
    /umpire models add: a text that is too long is cut without a word: of \d+ words the second half was not read: .*--tokenizer FILE is needed/,
  );
  t.deepEqual(await readdir(modelsDir), []);

  const tokenizer = await write('tokenizer.json', publishedTokenizer());
  const { status, err } = await add(server, 'rerank', '--tokenizer', tokenizer);
  t.is(status, 0, err);
  const { files, options } = await manifest();
  t.deepEqual(Object.keys(files), ['server-tokenizer.json']);
  t.like(options, { cuts: 'silently', tokenizer: 'server-tokenizer.json', raw: 'raw_scores' });
});

test.serial('scores that saturate are no scores: the reason is said, and nothing is left', async (t) => {
  const server = await rerankServer(t, { server: 'sglang' });
  server.behaviour.falsify = (body: readonly { readonly index: number }[]) =>
    body.map(({ index }) => ({ index, score: index === 0 ? 1 : 0 }));
  const { modelsDir, add } = await sceneOf(t);
  const { status, err } = await add(server, 'rerank');
  t.is(status, 1);
  t.regex(err, /the server's scores are saturated: 2 of the canary's 2 are exactly 0 or 1/);
  t.deepEqual(await readdir(modelsDir), []);
});

test.serial('a server that is away, wants another token, or speaks something else: each says what to do', async (t) => {
  const ranker = await rerankServer(t, { server: 'vllm' });
  const encoder = await encoderServer(t);
  const { modelsDir, write, add } = await sceneOf(t);
  const wrong = await write('token', 'not-the-token\n');

  ranker.behaviour.token = 'the-token';
  const without = await add(ranker, 'rerank');
  t.regex(
    without.err,
    /refused: POST \/v1\/rerank was answered with 401: .*; --token-file or --token-env says where one/,
  );
  const refused = await add(ranker, 'rerank', '--token-file', wrong);
  t.is(refused.status, 1);
  t.regex(refused.err, /was answered with 401: the token was refused.*; see what --token-file or --token-env names/);
  t.notRegex(refused.err, /not-the-token/);
  const unset = await add(ranker, 'rerank', '--token-env', 'UMPIRE_TOKEN_OF_NOBODY');
  t.regex(unset.err, /server.token_env: the variable UMPIRE_TOKEN_OF_NOBODY is not set/);
  ranker.behaviour.token = undefined;

  const other = await add(encoder, 'rerank');
  t.is(other.status, 1);
  t.regex(
    other.err,
    /does not answer as the dialect rerank has it; --url may name the whole path, --model the model:\n/,
  );
  t.regex(other.err, / {2}"documents": POST \/v1\/rerank was answered with 404/);
  const wrongModel = await add(ranker, 'rerank', '--model', 'nobody');
  t.regex(wrongModel.err, /The model nobody does not exist/);

  await ranker.kill();
  const away = await add(ranker, 'rerank');
  t.is(away.status, 1);
  t.regex(
    away.err,
    /cannot be asked: the connection failed \(ECONNREFUSED\).*Is it running, and is that its address\?/,
  );
  t.deepEqual(await readdir(modelsDir), []);
});

test.serial(
  'of an encoder: the temperature is fitted to labelled examples, and what the operator lays over holds',
  async (t) => {
    const server = await encoderServer(t, { models: { 'e5-query': '', 'e5-passage': '' }, maxRows: 20 });
    const { write, add, manifest } = await sceneOf(t);
    const named = await add(server, 'embeddings');
    t.regex(named.err, /the server has several models, of which --model names one: e5-query, e5-passage/);

    const examples = Array.from({ length: 24 }, (_, i) => ({
      input: `${['abc', 'xyz', 'mno'][i % 3]} ${'defghijkl'.slice(i % 7)} ${i}`,
      label: ['abc', 'xyz', 'mno'][(i % 8 === 0 ? i + 1 : i) % 3],
    }));
    const labelled = await write('labels.jsonl', examples.map((each) => `${JSON.stringify(each)}\n`).join(''));
    const own = await write('own.json', {
      input_model: 'e5-query',
      choice_model: 'e5-passage',
      batch: { independent: true },
    });
    const args = ['--options', own, '--examples', labelled, '--instruction', 'which'];
    const { status, out, err } = await add(server, 'embeddings', ...args);
    t.is(status, 0, err);
    const { options, limits } = await manifest();
    t.like(options, { dialect: 'embeddings', input_model: 'e5-query', choice_model: 'e5-passage', joint_weight: 0.2 });
    t.deepEqual(options.batch, { rows: rowsWithin(t, options, 16), independent: true });
    t.deepEqual(limits, { input_tokens: 48, candidate_tokens: 48, choices: 20 });
    t.true(options.temperature > 0.01 && options.temperature < 1, `${options.temperature}`);
    t.notRegex(out, /a usual one/);
    t.regex(out, new RegExp(`temperature ${options.temperature}, fitted on 24 examples:\n {4}right answers: `));
  },
);

test.serial('of a decision server: its body, the most choices that it takes, and a local model for more', async (t) => {
  const served = { encoder: await createEncoder(), model: 'nimble', options: 26, maxTokens: 1200 };
  const server = await startHttpModelServer(
    t,
    systemOneDialect({ ...served, variant: 'systemone', jointWeight: 0.25, temperature: 0.05, decimals: 4 }),
  );
  const { modelsDir, write, add, manifest } = await sceneOf(t);
  const local = await writePackage(modelsDir, { options: { temperature: 0.2 } });
  await writeFile(join(local, 'LICENSE'), 'words');
  const missing = await add(server, 'system-one', '--shortlist', 'nobody');
  t.regex(missing.err, /--shortlist: there is no package 'nobody' in /);
  const limits = ['--input-tokens', '40', '--candidate-tokens', '12'];
  const { status, out, err } = await add(server, 'system-one', '--shortlist', 'tiny', ...limits);
  t.is(status, 0, err);
  const { files, options, limits: found } = await manifest();
  t.like(options, { dialect: 'system-one', variant: 'systemone', model: 'nimble', options: 26, temperature: 1 });
  t.is(found.choices, 300);
  t.like(options.shortlist, { family: 'bi-encoder', limits: { choices: 300 }, options: { temperature: 0.2 } });
  t.deepEqual(Object.keys(files).toSorted(), ['model.onnx', 'tokenizer.json']);
  t.deepEqual((await readdir(join(modelsDir, 'far', 'r1'))).toSorted(), [
    ...['LICENSE', 'model.json', 'model.onnx', 'tokenizer.json'],
  ]);
  t.regex(out, /it is sent 26 choices at a time, which tiny picks where there are more\n/);
  t.regex(out, /POST \/v1\/systemone in the variant "systemone"/);

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

test.serial('a shortlist is a sound local model', async (t) => {
  const server = await rerankServer(t, {});
  const { modelsDir, add } = await sceneOf(t);
  await writePackage(modelsDir, { manifest: { family: 'remote', files: {}, options: {} } });
  t.regex((await add(server, 'rerank', '--shortlist', 'tiny')).err, /'tiny' is at a server itself; a local model/);
  const folder = await writePackage(modelsDir, { id: 'torn' });
  await writeFile(join(folder, 'tokenizer.json'), 'x'.repeat((await readFile(join(folder, 'tokenizer.json'))).length));
  t.regex((await add(server, 'rerank', '--shortlist', 'torn')).err, /--shortlist: 'torn' is broken: tokenizer.json /);
  t.is(server.requests.length, 0);
});

test.serial('examples that cannot be used are told of before the server is asked', async (t) => {
  const server = await encoderServer(t);
  const { write, add } = await sceneOf(t);
  const few = await write('few.jsonl', '{"input":"abc","instruction":"w","label":"a"}\n{"input":"b"}\n');
  const { status, err } = await add(server, 'embeddings', '--examples', few);
  t.is(status, 1);
  t.regex(err, /line 2: instruction, label must be a text that is not empty/);
  t.is(server.requests.length, 0);
});

const tensor = (name: string, datatype: string, ...shape: number[]) => ({ name, datatype, shape: shape.map(BigInt) });

test.serial(
  'of the Open Inference Protocol: inputs and output from its metadata, special tokens from the tokenizer',
  async (t) => {
    const metadata = { inputs: [tensor('input_ids', 'INT64', -1, -1)], outputs: [tensor('embedding', 'FP32', -1, 8)] };
    const server = await startInferenceServer(t, { graph: encoderGraph(), output: 'embedding', metadata });
    const { write, add, manifest } = await sceneOf(t);
    const bare = await add(server, 'open-inference', '--model', 'encoder');
    t.regex(bare.err, /--tokenizer FILE is needed, the model's tokenizer.json: rows are made here/);
    const tokenizer = await write('tokenizer.json', publishedTokenizer());
    const named = await add(server, 'open-inference', '--tokenizer', tokenizer);
    t.regex(named.err, /--model names the model at the server/);

    const args = [
      '--model',
      'encoder',
      '--tokenizer',
      tokenizer,
      '--input-tokens',
      '40',
      '--candidate-tokens',
      '12',
      '--choices',
      '20',
    ];
    const { status, out, err } = await add(server, 'open-inference', ...args);
    t.is(status, 0, err);
    const { options } = await manifest();
    const [cls, sep] = [tokenId('[CLS]'), tokenId('[SEP]')];
    t.like(options, { dialect: 'open-inference', model: 'encoder', returns: 'embedding', temperature: 0.05 });
    t.deepEqual(options.inputs, [{ name: 'input_ids', datatype: 'INT64', shape: [-1, -1], holds: 'ids' }]);
    t.deepEqual(options.rows.joint, [cls, '{instruction}', sep, '{input}', sep]);
    t.regex(out, /inputs input_ids INT64 .*: one embedding a row/);
  },
);

test.serial('of the Open Inference Protocol with classes: the operator says which column is the logit', async (t) => {
  const inputs = ['input_ids', 'attention_mask', 'token_type_ids'].map((name) => tensor(name, 'INT64', -1, -1));
  const metadata = { inputs, outputs: [tensor('logits', 'FP32', -1, 3)] };
  const server = await startInferenceServer(t, { graph: entailmentGraph('a'), output: 'logits', metadata });
  const { write, add, manifest } = await sceneOf(t);
  const tokenizer = await write('tokenizer.json', publishedTokenizer());
  const args = [
    '--model',
    'encoder',
    '--tokenizer',
    tokenizer,
    '--input-tokens',
    '40',
    '--candidate-tokens',
    '12',
    '--choices',
    '20',
  ];
  const unsaid = await add(server, 'open-inference', ...args);
  t.regex(unsaid.err, /a row of the output has 3 numbers: --options has to say returns, and column and minus/);
  const own = await write('own.json', { returns: 'logit', column: 0, minus: 2 });
  const { status, err } = await add(server, 'open-inference', ...args, '--options', own);
  t.is(status, 0, err);
  const { options } = await manifest();
  t.deepEqual(
    options.inputs.map(({ holds }: { holds: string }) => holds),
    ['ids', 'mask', 'types'],
  );
});

for (const [args, problem] of [
  [['far'], /'far' is not MODEL@REVISION/],
  [['far@r1'], /--url URL is needed/],
  [['far@r1', '--url', 'ftp://x', '--dialect', 'rerank'], /--url: must be http:\/\/… or https:\/\/…/],
  [
    ['far@r1', '--url', 'http://x', '--dialect', 'chat'],
    /--dialect must be one of open-inference, rerank, embeddings, system-one/,
  ],
  [['far@r1', '--url', 'http://u:p@x', '--dialect', 'rerank'], /--url: no credentials/],
  [['far@r1', '--url', 'http://x', '--dialect', 'rerank', '--ca', 'y'], /--ca: is for https/],
  [
    ['far@r1', '--url', 'http://x', '--dialect', 'rerank', '--token-file', 'a', '--token-env', 'b'],
    /--token-file or --token-env, not both/,
  ],
  [
    ['far@r1', '--url', 'http://x', '--dialect', 'rerank', '--examples', 'e', '--temperature', '1'],
    /--examples or --temperature, not both/,
  ],
] as const) {
  test(`bad arguments: ${args.join(' ')}`, async (t) => {
    const { status, err } = await runUmpire(['models', 'add', ...args]);
    t.is(status, 2, err);
    t.regex(err, problem);
  });
}
