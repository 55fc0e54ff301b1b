/** What `umpire models add` says where it cannot make a package, and what to do; nothing is left then. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { writePackage } from '../../engine/support/packages.ts';
import { encoderServer, rerankServer, sceneOf } from '../../support/models-add.ts';
import { runUmpire } from '../../support/terminal.ts';

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
