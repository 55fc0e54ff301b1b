/** What packages of each dialect over HTTP may say, and what they may not. */
import test from 'ava';
import { readEmbeddingsOptions } from '../../../../src/engine/families/remote/dialects/embeddings.ts';
import { readRerankOptions } from '../../../../src/engine/families/remote/dialects/rerank.ts';
import { InvalidOptions } from '../../../../src/engine/packages/manifest.ts';
import { clearTokenAddress, tokenVariableOf } from '../../../../src/engine/packages/servers.ts';
import { loadRemote } from '../../../../src/engine/worker/load-family.ts';
import { problemsOf, rerankOptions, TEXT_EMBEDDING_OPTIONS } from '../../support/remote-packages.ts';

type Options = Readonly<Record<string, unknown>>;
const SERVER = { address: 'localhost:8080' };

test('what is left out is as the servers have it', (t) => {
  const read = readRerankOptions({ ...rerankOptions('vllm'), server: SERVER });
  t.like(read, { refuses: false, model: 'small', scores: { kind: 'logit', ask: 'use_activation' } });
  t.like(read.server, { path: '/v1/rerank', health: '/health', tls: undefined, token: undefined });
  t.like(read.bounds, { rows: 32, requests: 8, timeoutMs: 5000 });
  t.is(readRerankOptions({ ...rerankOptions('tei'), server: SERVER }).server.path, '/rerank');
  t.is(readEmbeddingsOptions({ ...TEXT_EMBEDDING_OPTIONS, server: SERVER }).server.path, '/v1/embeddings');
});

const WRONG: readonly (readonly [Options, RegExp])[] = [
  [{ shape: 'pairs' }, /options\.shape must match/],
  [{ scores: 'rank' }, /options\.scores must match/],
  [{ raw: undefined }, /options\.raw must be a string/],
  [{ scores: 'probability' }, /options\.raw is unknown/],
  [{ truncate: 'yes' }, /options\.truncate must match/],
  [{ cuts: undefined }, /options\.cuts must be a string/],
  [{ cuts: 'silently', tokenizer: undefined, bytes_per_token: 4 }, /options\.tokenizer must be a string/],
  [{ tokenizer: undefined }, /options\.bytes_per_token must be a number/],
  [{ templates: { query: '{instruction}', document: '{choice}' } }, /templates\.query must mention \{input\}/],
  [{ templates: { query: '{input} {choice}', document: '{choice}' } }, /query must not mention \{choice\}/],
  [{ templates: { query: '{input}', document: 'it' } }, /templates\.document must mention \{choice\}/],
  [{ templates: { query: '{input}', document: '{choice}', prompt: '' } }, /templates\.prompt is unknown/],
  [{ temprature: 1 }, /options\.temprature is unknown/],
  [{ server: { ...SERVER, path: 'rerank' } }, /server\.path must match/],
  [{ server: { ...SERVER, path: '/a b' } }, /server\.path must match/],
  [{ server: { ...SERVER, path: '/a\r\nx: y' } }, /server\.path must match/],
  [{ server: { ...SERVER, health: 'http://h/' } }, /server\.health must match/],
  [{ server: { ...SERVER, token: 'secret' } }, /server\.token is unknown/],
  [{ server: { ...SERVER, token_env: 'HOME' } }, /server\.token_env must match/],
  [
    { server: { ...SERVER, token_env: 'UMPIRE_TOKEN_A', token_file: 't' } },
    /must have token_file or token_env, not both/,
  ],
  [{ server: { ...SERVER, tls: { key: 'k.pem' } } }, /tls must have certificate and key together/],
  [{ batch: { rows: 301 } }, /batch\.rows must be a number from 1 to 300/],
];
for (const [change, problem] of WRONG) {
  test(`${JSON.stringify(change)}: ${problem.source}`, (t) => {
    t.regex(problemsOf(readRerankOptions, { ...rerankOptions('vllm'), server: SERVER, ...change }).join('\n'), problem);
  });
}

test('an encoder without a weight for its second vector, and without a template for choices', (t) => {
  const { joint_weight: _, ...others } = TEXT_EMBEDDING_OPTIONS;
  t.regex(
    problemsOf(readEmbeddingsOptions, { ...others, server: SERVER }).join('\n'),
    /options\.joint_weight must be a number/,
  );
  const templates = { input: '{input}' };
  t.regex(
    problemsOf(readEmbeddingsOptions, { ...TEXT_EMBEDDING_OPTIONS, server: SERVER, templates }).join('\n'),
    /choice must be a string/,
  );
});

test('a dialect that there is not, and none', async (t) => {
  const load = (options: Options) => loadRemote({ options } as never);
  const message = 'options.dialect must be one of open-inference, rerank, embeddings, system-one, chat';
  await t.throwsAsync(load({ dialect: 'grpc' }), { instanceOf: InvalidOptions, message });
  await t.throwsAsync(load({}), { message: 'options.dialect must be a string' });
});

test('a token is handed over by the name of its variable, and told of where it travels in clear', (t) => {
  const token_env = 'UMPIRE_TOKEN_OF_RERANKER';
  t.is(tokenVariableOf({ server: { token_env } }), token_env);
  for (const odd of [undefined, {}, { server: { token_env: 'UMPIRE_API_KEYS' } }, { server: { token_env: 7 } }])
    t.is(tokenVariableOf(odd), undefined);
  const inClear = (address: string, more: object = { token_env }) =>
    clearTokenAddress({ server: { address, ...more } });
  t.is(inClear('gpu.internal:80'), 'gpu.internal:80');
  t.is(inClear('127.evil.example:80', { token_file: 't' }), '127.evil.example:80');
  for (const address of ['localhost:80', '127.0.0.1:80', '[::1]:80']) t.is(inClear(address), undefined);
  t.is(inClear('gpu.internal:80', {}), undefined);
  t.is(inClear('gpu.internal:443', { token_env, tls: {} }), undefined);
});
