/**
 * When a server is unfit, and what is asked twice: told by the outcome of calls, whatever their messages say. And
 * servers and clients that prove who they are.
 */
import { copyFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import test from 'ava';
import { GRPCInferenceService, ServerReadyRequestSchema } from '../../../../gen/inference/grpc_predict_v2_pb.ts';
import type { CallOutcome } from '../../../../src/engine/engine.ts';
import { unhindered } from '../../../../src/engine/families/family.ts';
import { CallFailed } from '../../../../src/engine/families/remote/call-failed.ts';
import { failureOf as grpcFailureOf, InferenceConnection } from '../../../../src/engine/families/remote/grpc/client.ts';
import { failureOf as httpFailureOf } from '../../../../src/engine/families/remote/http/answers.ts';
import { RemoteServer } from '../../../../src/engine/families/remote/remote-server.ts';
import { readCredentials } from '../../../../src/engine/families/remote/server-options.ts';
import { makeCertificate } from '../../../support/certificates.ts';
import { job, startEngine, terms } from '../../support/engine.ts';
import { startInferenceServer } from '../../support/inference-server.ts';
import { encoderGraph, modelsFolder } from '../../support/packages.ts';
import { writeInferencePackage } from '../../support/remote-packages.ts';

/** A server that serves; it is told of each problem with it. */
async function serving(unready: (problem: string) => void = () => {}, isSilent = () => false) {
  const connection = { readinessProblem: async () => (isSilent() ? 'silent' : undefined), close() {} };
  const bounds = { requests: 8, bytes: 1024, timeoutMs: 1000 };
  const open = async () => connection;
  const server = new RemoteServer({ open, bounds, unready: ([problem = '']) => unready(problem) });
  await server.connect();
  server.watch();
  return server;
}

/** After which of eight failures in a row a server was unfit. */
async function openings(failure: CallFailed): Promise<readonly number[]> {
  const opened: number[] = [];
  let made = 0;
  const server = await serving(() => opened.push(made));
  for (made = 1; made <= 8; made += 1) await server.attempt(unhindered, () => Promise.reject(failure)).catch(() => {});
  server.close();
  return opened;
}

const grpc = (code: number, details: string): CallFailed => grpcFailureOf({ code, details }, 'ModelInfer');
const http = (status: number, text = ''): CallFailed =>
  httpFailureOf({ status, retryAfter: undefined, body: Buffer.from(text) }, '/rerank');

const [CODES, TOO_LARGE] = [status, '{"error":{"message":"input is too large to process"}}'];
for (const [opened, failures] of [
  // About the request: the server is well.
  [[], [CODES.INVALID_ARGUMENT, CODES.OUT_OF_RANGE, CODES.RESOURCE_EXHAUSTED].map((code) => grpc(code, 'refused'))],
  [[], [...[400, 409, 413, 422].map((code) => http(code)), http(500, TOO_LARGE)]],
  // About the server, even if the message speaks of something else.
  [
    [5],
    [CODES.INTERNAL, CODES.UNKNOWN, CODES.FAILED_PRECONDITION, CODES.PERMISSION_DENIED].map((code) =>
      grpc(code, 'ModelInfer ended after INVALID_ARGUMENT'),
    ),
  ],
  [[5], [403, 424, 429, 500, 502, 503, 504, 599].map((code) => http(code, 'bad request'))],
  // No second one is needed.
  [[1], [grpc(CODES.UNAUTHENTICATED, ''), ...[301, 302, 307, 401, 404].map((code) => http(code))]],
] as const) {
  for (const failure of failures) {
    const when = opened[0] === undefined ? 'about the request' : `the server is unfit after ${opened[0]}`;
    test(`${failure.message}, ${failure.details.slice(0, 40)}: ${when}`, async (t) => {
      t.deepEqual(await openings(failure), opened);
    });
  }
}

test('a decision between failures, or time that was too short, keeps a server fit', async (t) => {
  const server = await serving(t.fail);
  const failure = http(500);
  for (let i = 0; i < 20; i += 1) {
    await server.attempt(unhindered, () => Promise.reject(failure)).catch(() => {});
    if (i % 4 === 3) server.decided();
    const late = { ...unhindered, deadline: performance.now() };
    await t.throwsAsync(
      server.attempt(late, () => Promise.reject(failure)),
      { name: 'JobStopped' },
    );
  }
  server.close();
});

test('a server that says nothing while it works is fit for twice the time of its longest call', async (t) => {
  const began = performance.now();
  let isSilent = false;
  let unfitAfter = 0;
  const server = await serving(
    () => {
      unfitAfter = performance.now() - began;
    },
    () => isSilent,
  );
  const call = (milliseconds: number) =>
    server.call({ rows: 1, bytes: 1 }, server.callOf(unhindered), () => sleep(milliseconds));
  await call(1200);
  isSilent = true;
  await call(1500);
  t.is(unfitAfter, 0);
  // Frozen, whoever leaves and comes meanwhile.
  const leaves = (): Promise<unknown> => {
    const once = () => sleep(500).then(() => Promise.reject(new CallFailed('timed_out', 'for a test')));
    return server.call({ rows: 1, bytes: 1 }, server.callOf(unhindered), once).catch(() => {});
  };
  while (unfitAfter === 0 && performance.now() - began < 15_000) await leaves();
  t.true(unfitAfter > 1200 + 1500 + 2 * 1500, `${unfitAfter}`);
  t.true(unfitAfter < 15_000, `${unfitAfter}`);
  server.close();
});

test('what fails more than now and then is not made again', async (t) => {
  const server = await serving();
  const call = async (outcome: CallOutcome): Promise<number> => {
    let made = 0;
    const once = async (): Promise<void> => {
      made += 1;
      if (outcome !== 'answered') throw new CallFailed(outcome, 'for a test');
    };
    await server.call({ rows: 1, bytes: 1 }, server.callOf(unhindered), once).catch(() => {});
    return made;
  };
  for (const outcome of ['refused', 'malformed', 'timed_out', 'canceled'] as const) t.is(await call(outcome), 1);
  let retried = 0;
  for (let i = 0; i < 10; i += 1) retried += (await call('unavailable')) - 1;
  t.true(retried > 0 && retried < 6, `${retried}`);
  t.is(await call('unavailable'), 1);
  for (let i = 0; i < 100; i += 1) await call('answered');
  t.is(await call('unavailable'), 2);
  t.like(server.takeCounts(), { retries: retried + 1, outcomes: { answered: 100 } });
  t.is(server.takeCounts(), undefined);
  server.close();
});

const own = makeCertificate('server');
const client = makeCertificate('client');
const foreign = makeCertificate('foreign');
const TLS = { cert: own.cert, key: own.key, ca: client.cert, requestCert: true, rejectUnauthorized: true };
const SERVED = { graph: encoderGraph(), output: 'embedding', tls: TLS };
const MODEL = {
  ...{ model: 'm', version: '', inputs: [], bounds: { messageBytes: 65_536 } },
  output: { name: 'embedding', datatype: 'FP32', shape: [-1, 1] },
} as const;
const PROOF = { certificate: client.certFile, key: client.keyFile };

test.serial('a server is believed by its CA and its name, a client by its certificate', async (t) => {
  const server = await startInferenceServer(t, SERVED);
  const port = server.address.split(':')[1];
  const ready = async (tls: object | undefined, host = 'localhost'): Promise<boolean> => {
    const all = { ca: undefined, certificate: undefined, key: undefined, serverName: undefined };
    const files = await readCredentials(tls && { ...all, ...tls }, dirname(own.certFile));
    const at = { address: `${host}:${port}`, tls: undefined, token: undefined };
    const connection = new InferenceConnection({ ...MODEL, server: at }, files, undefined);
    const asked = create(ServerReadyRequestSchema);
    try {
      const within = { signal: new AbortController().signal, within: 20_000 };
      return (await connection.call(GRPCInferenceService.method.serverReady, asked, within)).ready;
    } catch {
      return false;
    } finally {
      connection.close();
    }
  };
  t.true(await ready({ ca: own.certFile, ...PROOF }));
  t.true(await ready({ ca: own.certFile, ...PROOF, serverName: 'localhost' }, '127.0.0.1'));
  const nameless = ready({ ca: own.certFile, ...PROOF }, '127.0.0.1');
  await t.throwsAsync(nameless, { message: /server_name must name the server/ });
  t.true(await ready({ ca: 'cert.pem', ...PROOF }), 'a path in the folder');
  t.true(await ready({ ca: own.certFile, ...PROOF, serverName: 'localhost' }));
  t.false(await ready({ ca: own.certFile, ...PROOF, serverName: 'elsewhere.example' }), 'another name');
  t.false(await ready({ ca: foreign.certFile, ...PROOF }), 'another CA');
  t.false(await ready(PROOF), 'the CAs of the system');
  t.false(await ready({ ca: own.certFile }), 'no certificate');
  t.false(
    await ready({ ca: own.certFile, certificate: foreign.certFile, key: foreign.keyFile }),
    'a foreign certificate',
  );
  t.false(await ready(undefined), 'in clear');
  await t.throwsAsync(ready({ ca: '/nowhere/ca.pem' }), {
    message: /tls\.ca: '\/nowhere\/ca\.pem' cannot be read \(ENOENT\)/,
  });
});

test.serial('a package that is moved elsewhere gets its server from the operator', async (t) => {
  const server = await startInferenceServer(t, SERVED);
  const modelsDir = await modelsFolder(t);
  const there = { address: 'nowhere.example:1', tls: { ca: 'ca.pem', server_name: 'localhost', ...PROOF } };
  const folder = await writeInferencePackage(modelsDir, '', { options: { server: there } });
  await copyFile(own.certFile, join(folder, 'ca.pem'));
  const inferenceServers = new Map([
    ['remote', 'nowhere.example:2'],
    ['remote@r1', server.address],
  ]);
  const engine = await startEngine(t, { modelsDir, inferenceServers, largestRequestMs: 600_000 });
  t.like(await engine.score(job({ model: 'remote' }), terms()), { kind: 'scored' });
});
