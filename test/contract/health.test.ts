/** Contract 4.7 and 4.8, and `grpc.health.v1.Health` on the same state: live, ready, not ready, draining. */
import type { ClientReadableStream } from '@grpc/grpc-js';
import test from 'ava';
import { isError, VALID_BODY } from '../support/answers.ts';
import { callGrpc, errorDetails, openGrpc } from '../support/grpc.ts';
import { decide, send } from '../support/http.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { scriptedService, startService } from '../support/service.ts';

const SERVICES = ['', 'umpire.v1.DecisionService', 'umpire.v1.ModelService', 'umpire.v1.CatalogService'];

test('not ready: live all the same, and not serving by gRPC', async (t) => {
  const engine = createScriptedEngine();
  const service = await scriptedService(t, {}, engine);
  const { port } = service;
  t.is((await send(port, { path: '/health/ready?verbose=1' })).status, 200);
  const grpc = openGrpc(port);
  t.teardown(grpc.close);
  const check = async (service: string) =>
    (await callGrpc<{ status: string }>(grpc.health, 'Check', { service })).response?.status;
  const { trailers } = await callGrpc(grpc.health, 'Check', { service: 'nobody.Service' });
  t.like(errorDetails(trailers), { code: 5, reason: 'SERVICE_NOT_FOUND', domain: 'umpire' });

  engine.isReady = false;
  const unready = await send(port, { path: '/health/ready' });
  isError(t, unready, { status: 503, code: 'not_ready', param: null });
  t.regex(String(unready.headers['retry-after']), /^[1-9]/);
  t.is((await send(port, { path: '/health/ready', method: 'HEAD' })).status, 503);
  t.is((await send(port, { path: '/health/live' })).status, 200);
  for (const name of SERVICES) t.is(await check(name), 'NOT_SERVING', name);
  const list = await callGrpc<{ statuses: Record<string, { status: string }> }>(grpc.health, 'List', {});
  t.deepEqual(Object.keys(list.response?.statuses ?? {}).toSorted(), SERVICES.toSorted());
  t.is(list.response?.statuses['']?.status, 'NOT_SERVING');
});

test('watchers hear of each change, and are let go when draining begins', async (t) => {
  const engine = createScriptedEngine();
  const service = await startService({ UMPIRE_DRAIN_DELAY: '1' }, { engine });
  const grpc = openGrpc(service.port);
  const open = (name: string): ClientReadableStream<{ status: string }> =>
    (grpc.health as never as { Watch: (request: object) => ClientReadableStream<{ status: string }> }).Watch({
      service: name,
    });
  const heard = (stream: ClientReadableStream<{ status: string }>) => {
    const statuses: string[] = [];
    let next: () => void = () => {};
    stream.on('data', ({ status }) => {
      statuses.push(status);
      next();
    });
    stream.on('error', () => {});
    const ended = new Promise<void>((resolve) => stream.on('end', resolve));
    const reach = async (count: number): Promise<void> => {
      while (statuses.length < count)
        await new Promise<void>((resolve) => {
          next = resolve;
        });
    };
    return { statuses, ended, reach };
  };
  const whole = heard(open(''));
  const decisions = heard(open('umpire.v1.DecisionService'));
  const unknown = heard(open('nobody.Service'));
  await Promise.all([whole.reach(1), decisions.reach(1), unknown.reach(1)]);
  engine.isReady = false;
  await Promise.all([whole.reach(2), decisions.reach(2)]);
  engine.isReady = true;
  await Promise.all([whole.reach(3), decisions.reach(3)]);
  const stopped = service.stop();
  await Promise.all([whole.ended, decisions.ended, unknown.ended]);
  t.deepEqual(whole.statuses, ['SERVING', 'NOT_SERVING', 'SERVING', 'NOT_SERVING']);
  t.deepEqual(decisions.statuses, whole.statuses);
  t.deepEqual(unknown.statuses, ['SERVICE_UNKNOWN']);
  grpc.close();
  await stopped;
});

test('draining: unready at once, still serving, every answer closing its connection', async (t) => {
  const service = await startService({ UMPIRE_DRAIN_DELAY: '1' }, { engine: createScriptedEngine() });
  const { port } = service;
  const stopped = service.stop();
  const ready = await send(port, { path: '/health/ready' });
  isError(t, ready, { status: 503, code: 'draining', param: null });
  t.is(ready.headers.connection, 'close');
  t.is((await send(port, { path: '/health/live' })).status, 200);
  const decision = await decide(port, VALID_BODY);
  t.is(decision.status, 200);
  t.is(decision.headers.connection, 'close');
  for (const call of [{ path: '/none' }, { path: '/umpire.v1.ModelService/ListModels', body: '{}' }])
    t.is((await send(port, call)).headers.connection, 'close', call.path);
  await stopped;
  await t.throwsAsync(send(port, { path: '/health/live' }), { code: 'ECONNREFUSED' });
});
