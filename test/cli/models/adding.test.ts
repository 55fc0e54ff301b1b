/**
 * `umpire models add` against servers on real sockets that speak as the real ones do: what it finds, and the package
 * that it writes.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { rerankDialect } from '../../engine/support/http-models/rerank.ts';
import { startHttpModelServer } from '../../engine/support/http-models/server.ts';
import { systemOneDialect } from '../../engine/support/http-models/system-one.ts';
import { createEncoder, createPairScorer } from '../../engine/support/http-models/text-models.ts';
import { publishedTokenizer, writePackage } from '../../engine/support/packages.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { encoderServer, rerankServer, rowsWithin, sceneOf } from '../../support/models-add.ts';
import { runUmpire } from '../../support/terminal.ts';

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
    /umpire models add: a text that is too long is cut silently: of \d+ words the second half was not read: .*--tokenizer FILE is needed/,
  );
  t.deepEqual(await readdir(modelsDir), []);

  const tokenizer = await write('tokenizer.json', publishedTokenizer());
  const { status, err } = await add(server, 'rerank', '--tokenizer', tokenizer);
  t.is(status, 0, err);
  const { files, options } = await manifest();
  t.deepEqual(Object.keys(files), ['server-tokenizer.json']);
  t.like(options, { cuts: 'silently', tokenizer: 'server-tokenizer.json', raw: 'raw_scores' });
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

test.serial('over TLS, with a token: the package says where both are, and holds neither', async (t) => {
  const { cert, key, certFile } = makeCertificate('ranker');
  const scorer = await createPairScorer('a');
  const served = rerankDialect({ server: 'vllm', scorer, model: 'ranker', maxTokens: 64 });
  const server = await startHttpModelServer(t, served, { tls: { cert, key } });
  server.behaviour.token = 'the-secret-of-the-test';
  const { modelsDir, write, add, manifest } = await sceneOf(t);
  const token = await write('token', 'the-secret-of-the-test\n');
  const url = `https://${server.address}/v1/rerank`;
  const untrusted = await add(url, 'rerank', '--token-file', token);
  t.regex(
    untrusted.err,
    /cannot be asked: .*SELF_SIGNED_CERT.*Does its certificate need --ca, or does it not speak https\?/,
  );
  const { status, out, err } = await add(url, 'rerank', '--token-file', token, '--ca', certFile);
  t.is(status, 0, err);
  t.deepEqual((await manifest()).options.server, {
    address: server.address,
    tls: { ca: certFile },
    token_file: token,
    path: '/v1/rerank',
  });
  const text = await readFile(join(modelsDir, 'far', 'r1', 'model.json'), 'utf8');
  t.notRegex(out + err + text, /the-secret-of-the-test/);
});
