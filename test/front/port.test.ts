/** The port in front of a service: what one address may hold of it, and what nobody can fill. */
import { connect } from 'node:net';
import { setDefaultCACertificates } from 'node:tls';
import test from 'ava';
import { Turns } from '../../src/front/places.ts';
import type { Site } from '../../src/front/port.ts';
import { Umpire } from '../../src/front/umpire.ts';
import { startFront } from '../support/bridge.ts';
import { makeCertificate } from '../support/certificates.ts';
import { send } from '../support/http.ts';
import { startTestMock } from '../support/mock.ts';

/** Nothing answers there: the site of a test does all. */
const NOWHERE = 'http://127.0.0.1:9';

test('one address gets three quarters of the places, and probes need none', async (t) => {
  const held = Promise.withResolvers<void>();
  const site: Site = {
    idHeaders: ['x-request-id'],
    async serve() {
      await held.promise;
      return { status: 200, body: {} };
    },
    refuse: (_, { reason }) => ({ status: reason === 'OVERLOADED' ? 503 : 429, body: {} }),
    routeOf: () => undefined,
  };
  const { port } = await startFront(t, NOWHERE, () => site);
  const ask = (localAddress: string) => send(port, { path: '/', localAddress });
  const held1 = Array.from({ length: 192 }, () => ask('127.0.0.1'));
  // They are served in the order in which they arrive, but connections may overtake one another: all are there once
  // one more is refused.
  let refused = await Promise.race([ask('127.0.0.1'), ...held1]);
  while (refused.status !== 429) refused = await ask('127.0.0.1');
  t.is(refused.headers['retry-after'], '1');
  const held2 = Array.from({ length: 64 }, () => ask('127.0.0.2'));
  t.is((await Promise.race([...held2, ask('127.0.0.2'), ask('127.0.0.3')])).status, 503);
  t.is((await send(port, { path: '/health/live' })).status, 200);
  held.resolve();
  const statuses = (await Promise.all([...held1, ...held2])).map(({ status }) => status);
  t.true(statuses.filter((status) => status === 200).length >= 250, `${statuses}`);
  t.is((await ask('127.0.0.1')).status, 200);
});

test('a fault of the site is a 500 that says nothing, and is logged', async (t) => {
  const site: Site = {
    idHeaders: ['x-request-id'],
    serve: () => Promise.reject(new TypeError('of a test')),
    refuse: (_, { reason, message }) => ({ status: 500, body: { reason, message } }),
    routeOf: () => undefined,
  };
  const { port, log } = await startFront(t, NOWHERE, () => site);
  const { status, text } = await send(port, { path: '/' });
  t.deepEqual([status, JSON.parse(text)], [500, { reason: 'INTERNAL', message: 'it failed' }]);
  t.like(log[0], { level: 'error', err: { message: 'of a test' } });
});

test('a connection that sends nothing, or is not HTTP, gets no handler', async (t) => {
  const site: Site = {
    idHeaders: [],
    serve: () => Promise.reject(new Error('reached')),
    refuse: () => ({ status: 500, body: {} }),
    routeOf: () => undefined,
  };
  const { port, log } = await startFront(t, NOWHERE, () => site);
  const answer = await new Promise<string>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('\x00\x01\r\n\r\n'));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('close', () => resolve(text));
  });
  t.regex(answer, /^HTTP\/1\.1 400 /);
  t.deepEqual(log, []);
});

test('turns come in the order in which they were asked for, also after one that failed', async (t) => {
  const turns = new Turns(2);
  const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const began: number[] = [];
  const runs = gates.map(({ promise }, i) =>
    turns.run(async () => {
      began.push(i);
      await promise;
    }),
  );
  const outcomes = Promise.allSettled(runs);
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(began, [0, 1]);
  gates[1]?.reject(new Error('of a test'));
  await runs[1]?.catch(() => {});
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(began, [0, 1, 2]);
  for (const { resolve } of gates) resolve();
  const found = (await outcomes).map(({ status }) => status);
  t.deepEqual(found, ['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'fulfilled']);
  t.deepEqual(began, [0, 1, 2, 3, 4]);
});

test('a service with TLS is called by its name or its address, whichever its certificate has', async (t) => {
  const { cert, certFile, keyFile } = makeCertificate('umpire');
  setDefaultCACertificates([cert]);
  const env = { PORT: '0', HOST: '0.0.0.0', TLS_CERT: certFile, TLS_KEY: keyFile };
  const mock = await startTestMock({ env });
  t.teardown(() => mock.stop());
  const ready: Record<string, boolean> = {};
  for (const host of ['localhost', '127.0.0.1', '127.0.0.2']) {
    const umpire = new Umpire(`https://${host}:${new URL(mock.url).port}`);
    ready[host] = await umpire.isReady();
    umpire.close();
  }
  t.deepEqual(ready, { localhost: true, '127.0.0.1': true, '127.0.0.2': false });
});
