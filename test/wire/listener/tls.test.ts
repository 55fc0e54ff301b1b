/**
 * With a certificate the same port speaks TLS: HTTP/1.1 and HTTP/2 by ALPN, REST, Connect and gRPC, and a new
 * certificate after a reload.
 */

import { connect as connectSession } from 'node:http2';
import { request } from 'node:https';
import { connect as connectSocket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import test from 'ava';
import { DecisionService } from '../../../gen/umpire/v1/decision_service_pb.ts';
import { type Answer, isError, json, VALID_BODY } from '../../support/answers.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { DECIDE, sendH2, sendRaw } from '../../support/http.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { scriptedService, startService } from '../../support/service.ts';

const certificate = makeCertificate('first');
const ENV = { TLS_CERT: certificate.certFile, TLS_KEY: certificate.keyFile };
const service = await startService(ENV, { engine: createScriptedEngine() });
test.after.always(() => service.stop());

function open(port: number, options: object = {}): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
    socket.once('secureConnect', () => resolve(socket));
    socket.once('error', reject);
  });
}

const nameOf = async (port: number): Promise<string> => {
  const socket = await open(port);
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return String(subject.CN);
};

test('ALPN picks the protocol; a client without it gets HTTP/1.1', async (t) => {
  const { port } = service;
  for (const [offered, chosen] of [
    [['h2', 'http/1.1'], 'h2'],
    [['http/1.1'], 'http/1.1'],
    [['http/1.1', 'h2'], 'h2'],
  ] as const) {
    const socket = await open(port, { ALPNProtocols: offered });
    t.is(socket.alpnProtocol, chosen);
    socket.destroy();
  }
  const { answers } = await sendRaw(port, 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n', {
    connect: () => connect({ port, host: '127.0.0.1', rejectUnauthorized: false }),
  });
  t.is(answers[0]?.status, 200);
});

test('the certificate is the one of the files, and verifies', async (t) => {
  const answer = await new Promise<number | undefined>((resolve, reject) => {
    request(
      { port: service.port, host: 'localhost', path: '/health/live', ca: certificate.cert, agent: false },
      (response) => {
        response.resume();
        resolve(response.statusCode);
      },
    )
      .on('error', reject)
      .end();
  });
  t.is(answer, 200);
});

test('REST, Connect and gRPC behind TLS', async (t) => {
  const nodeOptions = { ca: certificate.cert };
  const session = connectSession(`https://localhost:${service.port}`, nodeOptions);
  const rest = await sendH2(session, { body: JSON.stringify(VALID_BODY) });
  t.is(rest.status, 200, rest.text);
  const overConnect = await sendH2(session, { path: DECIDE, body: JSON.stringify(VALID_BODY) });
  t.is(overConnect.status, 200, overConnect.text);
  session.destroy();
  const transport = createGrpcTransport({ baseUrl: `https://localhost:${service.port}`, nodeOptions });
  const { decision } = await createClient(DecisionService, transport).createDecision({
    ...VALID_BODY,
    choices: [...VALID_BODY.choices],
  });
  t.is(decision?.output?.choice, (json(rest) as { output: { choice: string } }).output.choice);
});

test('what is wrong with a request is said behind TLS as everywhere', async (t) => {
  const { port } = service;
  const raw = async (text: string): Promise<Answer> =>
    (await sendRaw(port, text, { connect: () => connect({ port, host: '127.0.0.1', rejectUnauthorized: false }) }))
      .answers[0] as Answer;
  isError(t, await raw('hello\r\n\r\n'), { status: 400, code: 'malformed_request', param: null });
  isError(t, await raw('GET / HTTP/1.1\r\n\r\n'), { status: 400, code: 'malformed_request', param: null });
  isError(t, await raw(`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`), {
    status: 431,
    code: 'headers_too_large',
    param: null,
  });
  isError(t, await raw('POST / HTTP/1.1\r\nHost: a\r\nExpect: x\r\nContent-Length: 0\r\n\r\n'), {
    status: 417,
    code: 'expectation_failed',
    param: null,
  });
  isError(t, await raw('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'), {
    status: 404,
    code: 'route_not_found',
    param: null,
  });
});

test('no TLS 1.1, and no cleartext', async (t) => {
  const { port } = service;
  await t.throwsAsync(open(port, { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' }));
  const { bytes } = await sendRaw(port, 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n', {
    connect: () => connectSocket(port, '127.0.0.1'),
  }).catch(() => ({ bytes: Buffer.alloc(0) }));
  t.notRegex(bytes.toString('latin1'), /HTTP/);
});

test('a reload uses the new certificate for new connections, keeps the old ones, and refuses a broken one', async (t) => {
  const { certFile, keyFile } = certificate;
  const engine = createScriptedEngine();
  const service = await scriptedService(t, { TLS_CERT: certFile, TLS_KEY: keyFile }, engine);
  const { app, port } = service;
  t.is(await nameOf(port), 'first');
  const session = connectSession(`https://localhost:${port}`, { rejectUnauthorized: false });
  t.is((await sendH2(session, { path: '/health/live' })).status, 200);
  const second = makeCertificate('second');
  app.reload({ cert: second.cert, key: second.key });
  t.is(await nameOf(port), 'second');
  t.is((await sendH2(session, { path: '/health/live' })).status, 200);
  const third = makeCertificate('third');
  t.throws(() => app.reload({ cert: 'no certificate', key: third.key }));
  t.throws(() => app.reload({ cert: third.cert, key: second.key }));
  t.is(await nameOf(port), 'second');
  session.destroy();
  t.true(engine.reloads >= 1);
});
