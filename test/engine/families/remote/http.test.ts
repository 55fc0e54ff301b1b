/** The connection to a server of HTTP: what it sends, what it believes, what it takes, and how each failure is told. */
import { execFileSync } from 'node:child_process';
import { unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { CallFailed } from '../../../../src/engine/families/remote/call-failed.ts';
import { tooLongOf } from '../../../../src/engine/families/remote/http/answers.ts';
import { openHttpConnection } from '../../../../src/engine/families/remote/http/http-connection.ts';
import { parseJson } from '../../../../src/engine/families/remote/http/parse-json.ts';
import type { HttpServerOptions } from '../../../../src/engine/families/remote/server-options.ts';
import { makeCertificate } from '../../../support/certificates.ts';
import type { Fault } from '../../support/http-models/faults.ts';
import { TOO_LONG } from '../../support/http-models/refusals.ts';
import { type HttpModelServer, type ServedDialect, startHttpModelServer } from '../../support/http-models/server.ts';
import { modelsFolder } from '../../support/packages.ts';

/** Says back what it was sent. */
const echo: ServedDialect = {
  path: '/echo',
  unauthorised: { status: 401, body: 'Incorrect key provided: wrong-one, wrong-one' },
  rows: () => 1,
  answer: async (body) => ({ status: 200, body }),
};
const BOUNDS = { requests: 4, messageBytes: 65_536 };
const terms = (within = 30_000, signal = new AbortController().signal) => ({ within, signal });

async function connect(
  t: ExecutionContext,
  { address }: Pick<HttpModelServer, 'address'>,
  change: Partial<HttpServerOptions> = {},
  folder = '/',
) {
  const server = { address, tls: undefined, token: undefined, path: '/echo', health: '/health', ...change };
  const connection = await openHttpConnection({ server, bounds: BOUNDS }, folder);
  t.teardown(() => connection.close());
  return connection;
}

async function failureOf(work: Promise<unknown>): Promise<CallFailed> {
  const failed = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failed instanceof CallFailed) return failed;
  throw new Error(`no CallFailed, but ${failed}`);
}

test('a body travels as it is, over connections that are kept', async (t) => {
  const server = await startHttpModelServer(t, echo);
  const connection = await connect(t, server);
  const body = '{"b":1,"10":2,"9":"ä🙂"}';
  for (let i = 0; i < 5; i++) t.deepEqual(await connection.post(body, terms()), JSON.parse(body));
  t.is(server.requests[0]?.text, body);
  t.is(server.connections, 1);
  t.like(server.requests[0]?.headers, { 'accept-encoding': 'identity', 'content-type': 'application/json' });
  t.is(server.requests[0]?.headers.authorization, undefined);
});

const reply = (status: number, body: unknown = {}, headers: Readonly<Record<string, string>> = {}): Fault => ({
  kind: 'reply',
  reply: { status, body, headers },
});
const FAULTS: Readonly<Record<string, readonly [Fault, Partial<CallFailed>]>> = {
  'a redirect': [reply(307, {}, { location: '/echo' }), { outcome: 'refused', blame: 'unfit' }],
  'a 401': [reply(401), { outcome: 'refused', blame: 'unfit' }],
  'a 403': [reply(403), { outcome: 'refused', blame: 'server' }],
  'a 404': [reply(404), { outcome: 'refused', blame: 'unfit' }],
  'a 400': [reply(400, 'no'), { outcome: 'refused', blame: 'request', tooLong: undefined, details: 'no' }],
  'a batch that is too large': [
    reply(413, { error: 'batch size 33 > maximum allowed batch size 32' }),
    { outcome: 'refused', blame: 'request', tooLong: undefined },
  ],
  'a 500': [reply(500), { outcome: 'refused', blame: 'server' }],
  'a 204': [reply(204, ''), { outcome: 'refused' }],
  'a 429 that says when': [reply(429, {}, { 'retry-after': '2' }), { outcome: 'unavailable', retryAfter: 2000 }],
  'a 503': [reply(503), { outcome: 'unavailable', retryAfter: undefined }],
  'a 502 with words for a wait': [reply(502, {}, { 'retry-after': 'soon' }), { outcome: 'unavailable' }],
  'no JSON': [reply(200, 'hello'), { outcome: 'malformed' }],
  'JSON that nests': [reply(200, '['.repeat(100) + ']'.repeat(100)), { outcome: 'malformed' }],
  'a large answer': [reply(200, `"${'a'.repeat(65_536)}"`), { outcome: 'malformed' }],
  'an answer without an end': [{ kind: 'endless' }, { outcome: 'malformed' }],
  'a compressed answer': [{ kind: 'compressed' }, { outcome: 'malformed' }],
  'something else than HTTP': [{ kind: 'babble' }, { outcome: 'malformed' }],
  'more headers than are read': [{ kind: 'headers' }, { outcome: 'malformed' }],
  'a connection that ends': [{ kind: 'reset' }, { outcome: 'unavailable' }],
  'a connection that ends in an answer': [{ kind: 'cut' }, { outcome: 'unavailable' }],
};
for (const [name, [fault, expected]] of Object.entries(FAULTS)) {
  test(`${name} is told as what it is, and the next call is answered`, async (t) => {
    const server = await startHttpModelServer(t, echo);
    const connection = await connect(t, server);
    Object.assign(server.behaviour, { fault, faultFor: 1 });
    const failed = await failureOf(connection.post('{"secret":1}', terms()));
    t.like(failed, expected, failed.message);
    t.false(failed.message.includes('secret'));
    t.is(server.requests.length, 1, 'nothing is followed or made again here');
    t.deepEqual(await connection.post('[1]', terms()), [1]);
  });
}

test('a call ends at its deadline, also while an answer trickles, and its connection with it', async (t) => {
  const server = await startHttpModelServer(t, echo);
  const connection = await connect(t, server);
  for (const behaviour of [{ delay: 5000 }, { delay: 0, fault: { kind: 'trickle' } as const }]) {
    Object.assign(server.behaviour, behaviour);
    const began = performance.now();
    t.is((await failureOf(connection.post('{}', terms(150)))).outcome, 'timed_out');
    t.true(performance.now() - began < 2500);
  }
});

test('an answer may take longer than a connection may be idle', async (t) => {
  const server = await startHttpModelServer(t, echo);
  const connection = await connect(t, server);
  t.deepEqual(await connection.post('{}', terms()), {});
  server.behaviour.delay = 5000;
  t.deepEqual(await connection.post('{}', terms()), {});
  t.is(server.connections, 1);
});

test('who leaves is given up at the server, and who has left is not asked for', async (t) => {
  const server = await startHttpModelServer(t, echo);
  const connection = await connect(t, server);
  server.behaviour.delay = 10_000;
  const leaving = new AbortController();
  const call = failureOf(connection.post('{}', terms(30_000, leaving.signal)));
  while (server.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  leaving.abort();
  t.is((await call).outcome, 'canceled');
  while (!server.requests[0]?.canceled) await new Promise((resolve) => setTimeout(resolve, 5));
  t.is((await failureOf(connection.post('{}', terms(30_000, leaving.signal)))).outcome, 'canceled');
  t.is(server.requests.length, 1);
});

test('a server that is not there, and one that says how it is', async (t) => {
  const server = await startHttpModelServer(t, echo);
  const ready = await connect(t, server);
  t.is(await ready.readinessProblem(), undefined);
  t.is(await (await connect(t, server, { health: '/nothing' })).readinessProblem(), undefined, 'it is there');
  server.behaviour.healthy = false;
  t.regex((await ready.readinessProblem()) ?? '', /is not ready: it answers with 503 \(GET \/health\)/);
  await server.kill();
  t.regex((await ready.readinessProblem()) ?? '', /cannot be asked: the connection failed \(ECONN(REFUSED|RESET)\)/);
  t.is((await failureOf(ready.post('{}', terms()))).outcome, 'unavailable');
  await server.revive();
  t.deepEqual(await ready.post('{}', terms()), {});
});

test('a token is read anew for each connection, and stands in no message', async (t) => {
  const folder = await modelsFolder(t);
  const server = await startHttpModelServer(t, echo);
  server.behaviour.token = 'right-one';
  const source = { token: { kind: 'file', file: 'token' } } as const;
  await t.throwsAsync(connect(t, server, source, folder), {
    message: "server.token_file: 'token' cannot be read (ENOENT)",
  });
  execFileSync('mkfifo', [join(folder, 'token')]);
  await t.throwsAsync(connect(t, server, source, folder), {
    message: "server.token_file: 'token' cannot be read (it is not a regular file)",
  });
  await unlink(join(folder, 'token'));
  for (const text of ['', 'two words', 'a\nb', 'ä']) {
    await writeFile(join(folder, 'token'), text);
    const message = "server.token_file: 'token' must hold one token on one line";
    await t.throwsAsync(connect(t, server, source, folder), { message });
  }
  await writeFile(join(folder, 'token'), 'wrong-one\n');
  const failed = await failureOf((await connect(t, server, source, folder)).post('{}', terms()));
  t.regex(failed.message, /the token was refused/);
  t.is(failed.details, 'Incorrect key provided: [token], [token]');
  await writeFile(join(folder, 'token'), 'right-one\n');
  t.deepEqual(await (await connect(t, server, source, folder)).post('{}', terms()), {});

  const variable = 'UMPIRE_TOKEN_OF_A_TEST';
  const named = { token: { kind: 'variable', variable } } as const;
  await t.throwsAsync(connect(t, server, named), { message: `server.token_env: the variable ${variable} is not set` });
  process.env[variable] = 'right-one';
  t.teardown(() => delete process.env[variable]);
  t.deepEqual(await (await connect(t, server, named)).post('{}', terms()), {});

  await (await connect(t, server, { ...named, tokenHeader: 'api-key' })).post('{}', terms()).catch(() => {});
  t.like(server.lastAsked, { 'api-key': 'right-one', authorization: undefined });
});

test('what an answer says of tokens is heard, in either naming, even if the answer is of no use', async (t) => {
  const connection = await connect(t, await startHttpModelServer(t, echo));
  const heard: unknown[] = [];
  const used = (tokens: unknown): unknown => heard.push(tokens);
  for (const usage of [
    { prompt_tokens: 12, completion_tokens: 1, total_tokens: 13 },
    { input_tokens: 7, output_tokens: 2 },
    { prompt_tokens: -1, completion_tokens: '3' },
    { prompt_tokens: 1e300 },
    null,
  ]) {
    await connection.post(JSON.stringify({ usage }), { ...terms(), used });
  }
  await connection.post('[]', { ...terms(), used });
  const none = { in: 0, out: 0 };
  t.deepEqual(heard, [{ in: 12, out: 1 }, { in: 7, out: 2 }, none, none, none, none]);
});

test('over TLS a server is believed by its CA and its name, a client by its certificate', async (t) => {
  const own = makeCertificate('server');
  const client = makeCertificate('client');
  const foreign = makeCertificate('foreign');
  const tls = { cert: own.cert, key: own.key, ca: client.cert, requestCert: true, rejectUnauthorized: true };
  const server = await startHttpModelServer(t, echo, { tls });
  const port = server.address.split(':')[1];
  const all = { ca: undefined, certificate: undefined, key: undefined, serverName: undefined };
  const proof = { certificate: client.certFile, key: client.keyFile };
  const answers = async (options: object | undefined, host = 'localhost'): Promise<boolean> => {
    const change = { tls: options && { ...all, ...options } };
    const connection = await connect(t, { address: `${host}:${port}` }, change, dirname(own.certFile));
    return await connection.post('{}', terms()).then(
      () => true,
      () => false,
    );
  };
  t.true(await answers({ ca: own.certFile, ...proof }));
  t.true(await answers({ ca: 'cert.pem', ...proof }), 'a path in the folder');
  t.true(await answers({ ca: own.certFile, ...proof, serverName: 'localhost' }, '127.0.0.1'));
  t.false(await answers({ ca: own.certFile, ...proof, serverName: 'elsewhere.example' }), 'another name');
  t.false(await answers({ ca: foreign.certFile, ...proof }), 'another CA');
  t.false(await answers(proof), 'the CAs that Node trusts');
  t.false(await answers({ ca: own.certFile }), 'no certificate');
  t.false(await answers(undefined), 'in clear');
});

for (const [server, refuse] of Object.entries(TOO_LONG)) {
  test(`${server}: a text that is too long is known by what it says`, (t) => {
    const { status, body } = refuse(1234, 512);
    const counts = server === 'system one' ? {} : { tokens: 1234, limit: 512 };
    t.deepEqual(tooLongOf(status, JSON.stringify(body)), counts);
  });
}

test('other words for it, and words for something else', (t) => {
  const said: readonly (readonly [number, string, ReturnType<typeof tooLongOf>])[] = [
    [400, 'You passed 600 input tokens; a maximum input length of 512 tokens', { tokens: 600, limit: 512 }],
    [
      400,
      'The decoder prompt (length 600) is longer than the maximum model length of 512',
      { tokens: 600, limit: 512 },
    ],
    [
      400,
      "The input (600 tokens) is longer than the model's context length (512 tokens).",
      { tokens: 600, limit: 512 },
    ],
    [500, 'the input length exceeds the context length', {}],
    [413, '<html>Request Entity Too Large</html>', {}],
    [413, 'batch size 33 > maximum allowed batch size 32', undefined],
    [400, 'no such field', undefined],
    [500, 'CUDA out of memory', undefined],
    [503, 'too long', undefined],
  ];
  for (const [status, text, expected] of said) t.deepEqual(tooLongOf(status, text), expected, text);
});

test('JSON is read to a depth, brackets in strings aside', (t) => {
  const nested = (depth: number): Buffer => Buffer.from('['.repeat(depth) + ']'.repeat(depth));
  t.notThrows(() => parseJson(nested(32)));
  t.throws(() => parseJson(nested(33)), { instanceOf: CallFailed });
  t.deepEqual(parseJson(Buffer.from(`["${'[{'.repeat(50)}\\"["]`)), [`${'[{'.repeat(50)}"[`]);
  t.throws(() => parseJson(Buffer.from('{"a":NaN}')), { message: 'the answer is not JSON' });
  for (const stream of ['data: {}\n\n', 'event: message\ndata: {}\n\n', ': keep-alive\n\n']) {
    t.throws(() => parseJson(Buffer.from(stream)), { message: 'the answer is a stream, though none was asked for' });
  }
});
