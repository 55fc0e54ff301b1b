/**
 * Probes on the operator's port: the same answers, and a flood of connections to either port does not keep them out.
 */
import { connect, type Socket } from 'node:net';
import test from 'ava';
import { json } from '../../support/answers.ts';
import { send } from '../../support/http.ts';
import { metricsPortOf } from '../../support/scrape.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { scriptedService, startService } from '../../support/service.ts';

test('they say what the other port says', async (t) => {
  const engine = createScriptedEngine();
  const service = await startService({ UMPIRE_METRICS_PORT: '0', UMPIRE_DRAIN_DELAY: '1' }, { engine });
  const port = metricsPortOf(service);
  t.like(await send(port, { path: '/health/live' }), { status: 200, text: '{"status":"live"}' });
  t.like(await send(port, { path: '/health/ready' }), { status: 200, text: '{"status":"ready"}' });
  t.like(await send(port, { path: '/health/ready', method: 'HEAD' }), { status: 200, text: '' });
  t.is((await send(port, { path: '/health/ready', method: 'POST' })).status, 404);
  t.is((await send(port, { path: '/health' })).status, 404);
  engine.isReady = false;
  const unready = await send(port, { path: '/health/ready' });
  t.is(unready.status, 503);
  t.is(unready.headers['retry-after'], '1');
  t.like(json(unready), { error: { code: 'not_ready', type: 'server_error', param: null } });
  t.is((await send(port, { path: '/health/live' })).status, 200);
  engine.isReady = true;
  const stopped = service.stop();
  t.like(json(await send(port, { path: '/health/ready' })), { error: { code: 'draining' } });
  await stopped;
});

test('connections that fill either port do not keep them out', async (t) => {
  const service = await scriptedService(t, { UMPIRE_METRICS_PORT: '0', UMPIRE_MAX_CONNECTIONS: '20' });
  const port = metricsPortOf(service);
  const open = (to: number, text: string): Socket => {
    const socket = connect(to, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(text);
    return socket;
  };
  const flood = [
    ...Array.from({ length: 100 }, () => open(service.port, 'GET /health/live HTTP/1.1\r\n')),
    ...Array.from({ length: 100 }, () => open(port, '')),
    ...Array.from({ length: 100 }, () => open(port, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n')),
  ];
  for (let count = 0; count < 10; count += 1) {
    t.is((await send(port, { path: '/health/live' })).status, 200);
    t.is((await send(port, { path: '/health/ready' })).status, 200);
  }
  for (const socket of flood) socket.destroy();
});
