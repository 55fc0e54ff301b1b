/** What packages of each dialect may say, what they may not, and how rows and addresses are read. */
import test from 'ava';
import { Semaphore } from '../../../../src/engine/families/remote/calls.ts';
import { readChatOptions } from '../../../../src/engine/families/remote/dialects/chat.ts';
import { readEmbeddingsOptions } from '../../../../src/engine/families/remote/dialects/embeddings.ts';
import {
  batchesOf,
  idsRow,
  readOpenInferenceOptions,
} from '../../../../src/engine/families/remote/dialects/open-inference.ts';
import { readRerankOptions } from '../../../../src/engine/families/remote/dialects/rerank.ts';
import { readSystemOneOptions } from '../../../../src/engine/families/remote/dialects/system-one.ts';
import { fill } from '../../../../src/engine/families/remote/options.ts';
import { laidOver } from '../../../../src/engine/package-tools/pack.ts';
import { askedAs, SERVER_NAMES, type ServerName } from '../../../../src/engine/package-tools/presets.ts';
import {
  DIALECT_NAMES,
  type DialectName,
  InvalidOptions,
  readOptions,
} from '../../../../src/engine/packages/manifest.ts';
import {
  clearTokenAddress,
  concurrencyOf,
  parseServers,
  tokenVariableOf,
} from '../../../../src/engine/packages/servers.ts';
import { loadRemote } from '../../../../src/engine/worker/load-family.ts';
import {
  EMBEDDING_OPTIONS,
  LOGIT_OPTIONS,
  problemsOf,
  rerankOptions,
  TEXT_EMBEDDING_OPTIONS,
} from '../../support/remote-packages.ts';

type Options = Readonly<Record<string, unknown>>;
const SERVER = { address: 'localhost:8080' };

test('what is left out is as the servers have it', (t) => {
  const read = readOptions({ ...rerankOptions('vllm'), server: SERVER }, readRerankOptions);
  t.like(read, { refuses: false, model: 'small', scores: { kind: 'logit', ask: 'use_activation' } });
  t.like(read.server, { path: '/v1/rerank', health: '/health', tls: undefined, token: undefined });
  t.like(read.bounds, { rows: 32, requests: 8, timeoutMs: 5000 });
  t.is(readOptions({ ...rerankOptions('tei'), server: SERVER }, readRerankOptions).server.path, '/rerank');
  t.is(readOptions({ ...TEXT_EMBEDDING_OPTIONS, server: SERVER }, readEmbeddingsOptions).server.path, '/v1/embeddings');
});

const WRONG: readonly (readonly [Options, RegExp])[] = [
  [{ shape: 'pairs' }, /options\.shape must be one of/],
  [{ scores: 'rank' }, /options\.scores must be one of/],
  [{ raw: undefined }, /options\.raw must be one of/],
  [{ scores: 'probability' }, /options\.raw is unknown/],
  [{ truncate: 'yes' }, /options\.truncate must be one of/],
  [{ cuts: undefined }, /options\.cuts must be one of/],
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
  const problems = (options: Options) => problemsOf(readEmbeddingsOptions, { ...options, server: SERVER }).join('\n');
  t.regex(problems(others), /options\.joint_weight must be a number/);
  t.regex(problems({ ...TEXT_EMBEDDING_OPTIONS, templates: { input: '{input}' } }), /choice must be a string/);
});

test('a dialect that there is not, and none', async (t) => {
  const load = (options: Options) => loadRemote({ options } as never);
  const message = 'options.dialect must be one of open-inference, rerank, embeddings, system-one, chat';
  await t.throwsAsync(load({ dialect: 'grpc' }), { instanceOf: InvalidOptions, message });
  await t.throwsAsync(load({}), { message: /^options.dialect must be one of/ });
});

const READERS = {
  rerank: readRerankOptions,
  embeddings: readEmbeddingsOptions,
  'system-one': readSystemOneOptions,
  chat: readChatOptions,
  'open-inference': readOpenInferenceOptions,
};
/** What a preset says with what is usual in the dialect; undefined where the server does not speak it. */
function presetOf(server: ServerName, dialect: DialectName) {
  try {
    const { options, preset } = askedAs(server, dialect);
    return laidOver(options, preset);
  } catch {
    return undefined;
  }
}

test('what every preset says is what its dialect reads', (t) => {
  let presets = 0;
  for (const server of SERVER_NAMES) {
    for (const dialect of DIALECT_NAMES) {
      const said = presetOf(server, dialect);
      if (said === undefined) continue;
      presets += 1;
      const rows = dialect === 'open-inference' ? { rows: { pair: [1, '{instruction} {input}', 2, '{choice}'] } } : {};
      const own = { dialect, model: 'm', tokenizer: 'tokenizer.json', server: SERVER, ...rows };
      t.deepEqual(problemsOf(READERS[dialect], laidOver(said, own)), [], `${server} ${dialect}`);
    }
  }
  t.is(presets, 33);
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

const TEXTS = { inputs: [{ name: 'text', datatype: 'BYTES', shape: [-1] }], tokenizer: undefined, bytes_per_token: 4 };

const inferenceProblems = (options: unknown): readonly string[] => problemsOf(readOpenInferenceOptions, options);

for (const [name, options] of Object.entries({
  embedding: { server: SERVER, ...EMBEDDING_OPTIONS },
  logit: { server: SERVER, ...LOGIT_OPTIONS },
  texts: {
    server: SERVER,
    ...EMBEDDING_OPTIONS,
    ...TEXTS,
    rows: { choice: { text: '{choice}' }, input: { text: '{input}' } },
  },
  'an IPv6 address and TLS': {
    ...EMBEDDING_OPTIONS,
    server: {
      address: '[::1]:8001',
      tls: { ca: 'ca.pem', certificate: 'c.pem', key: '/k.pem', server_name: 'scorer' },
    },
  },
  'all bounds': {
    ...{
      server: SERVER,
      ...EMBEDDING_OPTIONS,
      version: '3',
      batch: { rows: 300, independent: true },
      message_bytes: 65_536,
    },
    ...{ in_flight: { requests: 256, bytes: 2 ** 20 }, timeout_ms: 10 },
  },
})) {
  test(`${name}: sound options`, (t) => t.deepEqual(inferenceProblems(options), []));
}

const INFERENCE_WRONG: readonly (readonly [Readonly<Record<string, unknown>>, RegExp])[] = [
  [{ server: undefined }, /options\.server must be an object/],
  [{ server: { address: 'http://localhost:8001' } }, /options\.server\.address must match/],
  [{ server: { address: 'localhost' } }, /options\.server\.address must match/],
  [{ server: { ...SERVER, tls: { certificate: 'c.pem' } } }, /tls must have certificate and key together/],
  [{ model: '' }, /options\.model must match/],
  [{ inputs: [] }, /options\.inputs must be a list of at least 1 objects/],
  [{ inputs: ['ids'] }, /options\.inputs\[0\] must be an object/],
  [{ inputs: [{ ...EMBEDDING_OPTIONS.inputs[0], datatype: 'FP32' }] }, /inputs\[0\]\.datatype must be one of/],
  [{ inputs: [{ ...EMBEDDING_OPTIONS.inputs[0], shape: [1, -1] }] }, /inputs\[0\]\.shape must be a list of dimensions/],
  [{ inputs: [{ ...EMBEDDING_OPTIONS.inputs[0], shape: [-1] }] }, /inputs\[0\]\.shape must be \[-1, -1\]/],
  [{ inputs: [{ ...EMBEDDING_OPTIONS.inputs[0], holds: 'mask' }] }, /must have one that holds ids/],
  [{ inputs: [...EMBEDDING_OPTIONS.inputs, ...TEXTS.inputs] }, /must all be integers or all be BYTES/],
  [{ output: { ...EMBEDDING_OPTIONS.output, datatype: 'INT64' } }, /options\.output\.datatype must be one of/],
  [{ output: { ...EMBEDDING_OPTIONS.output, shape: [-1, -1] } }, /options\.output must have the shape \[-1, width\]/],
  [{ returns: 'vector' }, /options\.returns must be one of/],
  [{ rows: { ...EMBEDDING_OPTIONS.rows, choice: [1, 'no choice'] } }, /options\.rows\.choice must mention \{choice\}/],
  [{ rows: { ...EMBEDDING_OPTIONS.rows, input: [1, '{input} {choice}'] } }, /rows\.input must not mention \{choice\}/],
  [{ rows: { ...EMBEDDING_OPTIONS.rows, choice: [-1, '{choice}'] } }, /rows\.choice must be a list of token ids/],
  [{ joint_weight: 2 }, /options\.joint_weight must be a number from 0 to 1/],
  [{ tokenizer: undefined }, /options\.tokenizer must be a string/],
  [{ temperature: 0 }, /options\.temperature/],
  [{ batch: { rows: 0 } }, /batch\.rows must be a number from 1 to 300/],
  [{ in_flight: { requests: 1000 } }, /in_flight\.requests must be a number from 1 to 256/],
  [{ timeout_ms: 0.5 }, /timeout_ms/],
];
for (const [change, problem] of INFERENCE_WRONG) {
  test(`${JSON.stringify(change)} is a problem: ${problem.source}`, (t) => {
    t.regex(inferenceProblems({ server: SERVER, ...EMBEDDING_OPTIONS, ...change }).join('\n'), problem);
  });
}

test('a logit must lie in the output, and a server of texts needs a rule for tokens', (t) => {
  const logits = (change: object) => inferenceProblems({ server: SERVER, ...LOGIT_OPTIONS, ...change }).join();
  t.regex(logits({ column: 3 }), /options\.column must be a number from 0 to 2/);
  t.regex(logits({ output: { ...LOGIT_OPTIONS.output, shape: [-1, -1] } }), /how many numbers/);
  const rows = { choice: { text: '{choice}', other: '' }, input: { text: '{input}' } };
  const texts = { server: SERVER, ...EMBEDDING_OPTIONS, ...TEXTS, rows, bytes_per_token: undefined };
  const problems = inferenceProblems(texts).join('\n');
  t.regex(problems, /rows\.choice\.other is not one of the inputs/);
  t.regex(problems, /bytes_per_token must be a number/);
});

test('the number of decisions at a time is known before the options are checked', (t) => {
  t.is(concurrencyOf({ in_flight: { requests: 3 } }), 3);
  for (const in_flight of [7, { requests: 'x' }, { requests: 1e9 }]) t.is(concurrencyOf({ in_flight }), 8);
  for (const odd of [undefined, null, {}]) t.is(concurrencyOf(odd), 8);
});

test('addresses of an operator', (t) => {
  t.deepEqual(parseServers(' a=h:1, b@r2=[::1]:8001 '), {
    value: new Map([
      ['a', 'h:1'],
      ['b@r2', '[::1]:8001'],
    ]),
  });
  t.deepEqual(parseServers(''), { value: new Map() });
  for (const wrong of ['a', 'a=h', 'A=h:1', 'a=h:1,', 'a=h:1,a=h:2', 'a=grpc://h:1'])
    t.true('problem' in parseServers(wrong), wrong);
});

test('a row of ids is made part by part; the types change where the choice is read', (t) => {
  const tokenizer = { ids: (text: string) => [...text].map((c) => c.charCodeAt(0)) };
  const read = (text: string) => ({ text, ids: tokenizer.ids(text) });
  const row = idsRow(
    [1, '{input}', 2, 'x{choice}', 3],
    { input: read('ab'), choice: read('{input}') },
    tokenizer,
    new Map(),
  );
  t.deepEqual(row, { ids: [1, 97, 98, 2, ...tokenizer.ids('x{input}'), 3], typesFrom: 4 });
  t.is(fill('{choice} $& {input}{other}', { choice: read('$1{input}'), input: read('i') }), '$1{input} $& i{other}');
});

test('rows share a request only with rows of their length, within the bounds, always in the same way', (t) => {
  const inputs = [{ name: 'ids', datatype: 'INT64', shape: [-1, -1], holds: 'ids' }] as const;
  const row = (length: number) => ({ ids: new Array<number>(length).fill(7), typesFrom: length });
  const rows = [3, 4, 3, 3, 4, 100].map(row);
  t.deepEqual(batchesOf(rows, inputs, { rows: 2, messageBytes: 65_536 }), [[0, 2], [3], [1, 4], [5]]);
  t.deepEqual(batchesOf(rows, inputs, { rows: 9, messageBytes: 40 }), [[0], [2], [3], [1], [4], [5]]);
  t.deepEqual(batchesOf([['a'], ['bb'], ['c']], [], { rows: 2, messageBytes: 1000 }), [[0, 1], [2]]);
});

test('a gate lets in as many requests and bytes as it may, in order, and forgets who leaves', async (t) => {
  const gate = new Semaphore({ requests: 2, bytes: 10 });
  const never = new AbortController().signal;
  const order: string[] = [];
  const enter = async (name: string, bytes: number, signal = never) => {
    const leave = await gate.enter(bytes, signal);
    order.push(name);
    return leave;
  };
  const [a, b] = await Promise.all([enter('a', 4), enter('b', 4)]);
  const leaving = new AbortController();
  const c = enter('c', 4, leaving.signal);
  const large = enter('large', 50);
  const d = enter('d', 1);
  leaving.abort();
  await t.throwsAsync(c);
  a();
  t.deepEqual(order, ['a', 'b']);
  b();
  const leaveLarge = await large;
  t.is(gate.inside, 1);
  leaveLarge();
  (await d)();
  t.deepEqual(order, ['a', 'b', 'large', 'd']);
  t.is(gate.inside, 0);
});
