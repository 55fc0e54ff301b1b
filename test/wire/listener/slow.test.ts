/**
 * Callers that are slow on purpose: each is let go in its time, with a 408 in the envelope where a request had begun,
 * in cleartext and behind TLS. The tests wait side by side, for half a minute in all.
 */

import { connect as connectSession } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { connect as connectSecure, type TLSSocket } from 'node:tls';
import test from 'ava';
import { type Answer, type ExpectedError, isError } from '../../support/answers.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { DECIDE, parseAnswers } from '../../support/http.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';

const { certFile, keyFile } = makeCertificate('slow');
const engine = createScriptedEngine();
const services = {
  plain: await startService({}, { engine }),
  secure: await startService({ TLS_CERT: certFile, TLS_KEY: keyFile }, { engine }),
};
const { plain, secure } = services;
test.after.always(() => Promise.all([plain.stop(), secure.stop()]));

/** Milliseconds after which an open connection is a failure, whatever the machine is busy with. */
const PATIENCE = 60_000;

interface End {
  readonly bytes: Buffer;
  readonly answers: readonly Answer[];
  readonly seconds: number;
}

/** Writes the parts, one every 400 ms, and waits until the server closes. */
function untilClosed(socket: Socket | TLSSocket, parts: readonly (string | Uint8Array)[]): Promise<End> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const chunks: Buffer[] = [];
    let next = 0;
    const write = (): void => {
      const part = parts[next];
      next += 1;
      if (part !== undefined && socket.writable) socket.write(part);
    };
    write();
    const drip = setInterval(write, 400);
    const giveUp = setTimeout(() => {
      clearInterval(drip);
      socket.destroy();
      reject(new Error('the server kept the connection'));
    }, PATIENCE);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      clearInterval(drip);
      clearTimeout(giveUp);
      const bytes = Buffer.concat(chunks);
      resolve({ bytes, answers: parseAnswers(bytes), seconds: (performance.now() - startedAt) / 1000 });
    });
  });
}

const LATE: ExpectedError = { status: 408, code: 'request_timeout', param: null };
const post = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`;

/** What is written over HTTP/1.1, and the seconds that it may take. */
const SLOW: Readonly<Record<string, readonly [parts: readonly string[], least: number, most: number]>> = {
  'half a head': [['GET / HTTP/1.1\r\nHost:'], 9, 20],
  'a head that drips': [[...`GET / HTTP/1.1\r\nHost: a\r\n${'x: y\r\n'.repeat(20)}`], 9, 20],
  'half a body': [[post('/v1/decisions')], 28, 45],
  'a body that drips': [[post('/v1/decisions'), ...' '.repeat(100)], 28, 45],
};

for (const [what, [parts, least, most]] of Object.entries(SLOW)) {
  for (const kind of ['plain', 'secure'] as const) {
    test(`${kind}: ${what}`, async (t) => {
      const { port } = services[kind];
      const socket =
        kind === 'plain'
          ? connect(port, '127.0.0.1')
          : connectSecure({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
      const { answers, seconds } = await untilClosed(socket, parts);
      isError(t, answers[0] as Answer, LATE);
      t.is(answers.length, 1);
      t.true(seconds > least && seconds < most, `${seconds} s`);
    });
  }
}

test('a second request that never comes whole', async (t) => {
  const { answers } = await untilClosed(connect(plain.port, '127.0.0.1'), [
    'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n',
    'GET /',
  ]);
  t.is(answers[0]?.status, 200);
  isError(t, answers[1] as Answer, LATE);
});

test('sockets that say nothing, half a preface, or nothing of TLS', async (t) => {
  const ends = await Promise.all([
    untilClosed(connect(plain.port, '127.0.0.1'), []),
    untilClosed(connect(plain.port, '127.0.0.1'), ['PRI * HTT']),
    untilClosed(connect(secure.port, '127.0.0.1'), []),
    untilClosed(connect(secure.port, '127.0.0.1'), [Buffer.from('1603010200', 'hex')]),
  ]);
  for (const { bytes, seconds } of ends) {
    t.is(bytes.length, 0);
    t.true(seconds > 8 && seconds < 25, `${seconds} s`);
  }
});

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
const UNFINISHED: Readonly<Record<string, readonly Buffer[]>> = {
  'a preface alone': [preface],
  'half a frame head': [Buffer.concat([preface, settings, Buffer.from([0, 0, 20, 1])])],
  'headers without their end': [Buffer.concat([preface, settings, Buffer.from([0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82])])],
  'a frame that drips': [
    Buffer.concat([preface, settings, Buffer.from([0, 0, 100, 1, 4, 0, 0, 0, 1])]),
    ...Array.from({ length: 90 }, () => Buffer.from([0x82])),
  ],
};

for (const [what, parts] of Object.entries(UNFINISHED)) {
  test(`HTTP/2: ${what}`, async (t) => {
    const sockets = [
      connect(plain.port, '127.0.0.1'),
      connectSecure({ port: secure.port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] }),
    ];
    for (const { seconds } of await Promise.all(sockets.map((socket) => untilClosed(socket, parts)))) {
      t.true(seconds > 4 && seconds < 30, `${seconds} s`);
    }
  });
}

test('HTTP/2: a session that is only idle stays', async (t) => {
  const session = connectSession(plain.url);
  let closed = false;
  session.on('close', () => {
    closed = true;
  });
  session.on('error', () => {});
  await new Promise((resolve) => setTimeout(resolve, 14_000));
  t.false(closed);
  session.destroy();
});

test('HTTP/2: bodies that never come whole', async (t) => {
  const session = connectSession(plain.url);
  session.on('error', () => {});
  const ask = (path: string, type: string): Promise<Record<string, unknown>> =>
    new Promise((resolve, reject) => {
      const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': type });
      let head: Record<string, unknown> = {};
      let text = '';
      stream.on('response', (headers) => {
        head = { ...head, ...headers };
      });
      stream.on('trailers', (headers) => {
        head = { ...head, ...headers };
      });
      stream.on('data', (chunk) => {
        text += chunk;
      });
      stream.on('error', reject);
      stream.on('end', () => resolve({ ...head, text }));
      stream.write(Buffer.from([0]));
    });
  const [rest, connectAnswer, grpc] = await Promise.all([
    ask('/v1/decisions', 'application/json'),
    ask(DECIDE, 'application/json'),
    ask(DECIDE, 'application/grpc'),
  ]);
  isError(t, { status: Number(rest[':status']), headers: rest as never, text: String(rest.text) }, LATE);
  t.is(connectAnswer[':status'], 504);
  t.regex(String(connectAnswer.text), /DEADLINE_EXCEEDED/);
  t.is(grpc['grpc-status'], '4');
  session.destroy();
});
