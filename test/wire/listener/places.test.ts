/** Where a service listens: on all addresses of both kinds, or on a Unix socket. */
import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { listen } from '../../../src/wire/http/listen.ts';
import { type Answer, json, VALID_BODY } from '../../support/answers.ts';
import { decide, send, sendH2 } from '../../support/http.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const start = (env: Record<string, string>) => startService(env, { engine: createScriptedEngine() });

/** Sends a request to a Unix socket. */
function sendLocally(socketPath: string, path: string, headers = {}, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST';
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const sent = request({ agent: false, socketPath, path, method, headers: { ...type, ...headers } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    sent.on('error', reject).end(body);
  });
}

test('HOST is :: by default: callers come over IPv6 and over IPv4, and the latter are known by their IPv4 address', async (t) => {
  const env = { HOST: '', UMPIRE_METRICS_PORT: '0', UMPIRE_QUOTA_ANONYMOUS: '1' };
  const service = await start(env);
  t.teardown(service.stop);
  t.is((await decide(service.port, VALID_BODY)).status, 200);
  t.is((await send(service.port, { host: '::1', path: '/v1/models' })).status, 200);
  const { metricsPort } = service.log.find(({ msg }) => msg === 'metrics') as { metricsPort: number };
  for (const host of ['127.0.0.1', '::1']) t.is((await send(metricsPort, { host, path: '/health/ready' })).status, 200);
  t.like(
    service.log.find(({ msg }) => msg === 'listening'),
    { host: '::', port: service.port, pid: process.pid },
  );
  // Two kinds of address are two callers, each with a quota of its own.
  t.is((await decide(service.port, VALID_BODY)).status, 429);
  t.is((await send(service.port, { host: '::1', body: JSON.stringify(VALID_BODY) })).status, 200);
});

test('where the system has no IPv6, :: is 0.0.0.0, and any other failure is one', async (t) => {
  for (const [code, expected] of [
    ['EAFNOSUPPORT', '0.0.0.0'],
    ['EADDRNOTAVAIL', '0.0.0.0'],
    ['EACCES', undefined],
  ] as const) {
    const server = createServer();
    const listenFor = server.listen.bind(server);
    // What a kernel without IPv6 says of `::`; everything else is the real server.
    server.listen = ((options: { host: string }, opened: () => void) => {
      if (options.host !== '::') return listenFor(options, opened);
      process.nextTick(() => server.emit('error', Object.assign(new Error(code), { code })));
      return server;
    }) as typeof server.listen;
    t.teardown(() => server.close());
    const place = await listen(server, { port: 0, host: '::' }).catch(({ code: said }) => said);
    if (expected === undefined) t.is(place, code);
    else t.is(place.host, expected);
  }
});

test('a Unix socket: its group may connect, both versions of HTTP are spoken, and it goes with the service', async (t) => {
  const path = join(temporaryFolder(), 'umpire.sock');
  const metrics = join(temporaryFolder(), 'metrics.sock');
  const service = await start({ PORT: path, UMPIRE_METRICS_PORT: metrics });
  t.is(statSync(path).mode & 0o777, 0o660);
  t.is((await sendLocally(path, '/v1/decisions', {}, JSON.stringify(VALID_BODY))).status, 200);
  t.is((await sendLocally(metrics, '/health/ready')).status, 200);
  const sessions = [1, 2].map(() => connectHttp2('http://localhost', { createConnection: () => connect(path) }));
  for (const session of sessions) t.is((await sendH2(session, { body: JSON.stringify(VALID_BODY) })).status, 200);
  t.is(service.app.holdings().connections, 2);
  for (const session of sessions) session.destroy();
  await service.stop();
  t.false(existsSync(path));
});

test('the proxy at a Unix socket says who its callers are, if it is trusted', async (t) => {
  const decided = async (trusted: string) => {
    const path = join(temporaryFolder(), 'umpire.sock');
    const service = await start({ PORT: path, UMPIRE_QUOTA_ANONYMOUS: '1', UMPIRE_TRUSTED_PROXIES: trusted });
    t.teardown(service.stop);
    const statuses: number[] = [];
    for (const caller of ['192.0.2.1', '192.0.2.2', '192.0.2.1']) {
      const headers = { 'x-forwarded-for': caller };
      statuses.push((await sendLocally(path, '/v1/decisions', headers, JSON.stringify(VALID_BODY))).status);
    }
    return statuses;
  };
  t.deepEqual(await decided('unix'), [200, 200, 429]);
  t.deepEqual(await decided('127.0.0.1'), [200, 429, 429]);
});

test('the file of a socket on which nobody listens is replaced; another file, and a socket in use, are not', async (t) => {
  const folder = temporaryFolder();
  const stale = join(folder, 'stale.sock');
  const left = createServer().listen(stale);
  await new Promise((resolve) => left.once('listening', resolve));
  // What a process leaves that was killed: its end would remove the file.
  const { rename } = await import('node:fs/promises');
  await rename(stale, `${stale}.kept`);
  await new Promise((resolve) => left.close(resolve));
  await rename(`${stale}.kept`, stale);
  const service = await start({ PORT: stale });
  t.is(json(await sendLocally(stale, '/')).service, 'umpire');

  const other = { engine: createScriptedEngine() };
  await t.throwsAsync(startService({ PORT: stale }, other), { code: 'EADDRINUSE' });
  t.is((await sendLocally(stale, '/')).status, 200);
  await service.stop();

  const file = join(folder, 'file');
  writeFileSync(file, 'kept');
  chmodSync(file, 0o600);
  await t.throwsAsync(startService({ PORT: file }, other), { code: 'EADDRINUSE' });
  t.is(statSync(file).size, 4);
});
