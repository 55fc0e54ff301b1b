/** Servers that go away and come back, and the process that asks them. */
import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { ModelUnavailable } from '../../../../src/engine/errors.ts';
import { eventually, job, probabilitiesOf, startEngine, terms } from '../../support/engine.ts';
import { startInferenceServer } from '../../support/inference-server.ts';
import { encoderGraph, modelsFolder, TINY } from '../../support/packages.ts';
import { problemsIn, startInferenceScene, writeInferencePackage } from '../../support/remote-packages.ts';

const request = job({ model: 'remote' });

test.serial('what stays the same is not said again and again while a server is away', async (t) => {
  const { engine, server, status } = await startInferenceScene(t);
  await server.kill();
  await eventually(() => status() === 'unavailable');
  t.false(engine.ready());
  t.regex(problemsIn(engine, 'a model cannot be served'), /cannot be asked/);
  const lines = engine.log.length;
  await new Promise((resolve) => setTimeout(resolve, 1500));
  t.true(engine.log.slice(lines).filter(({ level }) => level === 'error').length <= 1);
});

test.serial('a server that says it is not ready, or that its model is not, gets nothing until it is', async (t) => {
  const { engine, server, status } = await startInferenceScene(t, {}, { until: 'started' });
  await eventually(() => status() === 'ready');
  for (const field of ['ready', 'modelReady', 'healthy'] as const) {
    server.behaviour[field] = false;
    await eventually(() => status() === 'unavailable');
    const asked = server.requests.length;
    await t.throwsAsync(engine.score(request, terms()), { instanceOf: ModelUnavailable });
    t.is(server.requests.length, asked);
    server.behaviour[field] = true;
    await eventually(() => status() === 'ready');
  }
});

/** The processes of this one that ask servers. */
const children = (): readonly number[] =>
  execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(process.pid)], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => /worker\/main\.ts .*\bremote@r1$/.test(line.trim()))
    .map((line) => Number(line.trim().split(' ')[0]));

test.serial(
  'a changed package takes over when its server can serve it, and a removed one leaves nothing',
  async (t) => {
    const { engine, server, modelsDir } = await startInferenceScene(t);
    const other = await startInferenceServer(t, { graph: encoderGraph(2), output: 'embedding' });
    const before = probabilitiesOf(request, await engine.score(request, terms()));
    const [first] = children();
    other.behaviour.ready = false;
    await writeInferencePackage(modelsDir, other.address);
    await eventually(() => children().length === 2);
    t.deepEqual(
      probabilitiesOf(request, await engine.score(request, terms())),
      before,
      'the old one serves until then',
    );
    other.behaviour.ready = true;
    await eventually(() => other.requests.length > 0 && children().length === 1);
    t.notDeepEqual(children(), [first]);
    const asked = server.requests.length;
    t.notDeepEqual(probabilitiesOf(request, await engine.score(request, terms())), before);
    t.is(server.requests.length, asked);
    await rm(join(modelsDir, 'remote'), { recursive: true });
    await eventually(() => engine.models().length === 0 && children().length === 0);
  },
);

test.serial('the process that asks is replaced when it is killed, and decisions survive it', async (t) => {
  const { engine, server } = await startInferenceScene(t);
  t.is(children().length, 1);
  server.behaviour.delay = 200;
  const from = server.requests.length;
  const going = engine.score(request, terms());
  await eventually(() => server.requests.length > from);
  process.kill(children()[0] as number, 'SIGKILL');
  t.like(await going, { kind: 'scored' });
});

test('an address that is set for a model without a server is reported at the start', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  await writeInferencePackage(modelsDir, '127.0.0.1:1');
  const address = '127.0.0.1:1';
  const inferenceServers = new Map(
    ['remote', 'remoet', 'tiny', 'remote@r1', 'remote@r2'].map((name) => [name, address]),
  );
  const engine = await startEngine(t, { modelsDir, inferenceServers }, 'started');
  const report = 'an address of an inference server is set for a model that has none';
  t.deepEqual(
    engine.log.filter(({ message }) => message === report).map(({ level, fields }) => [level, fields.models]),
    [['warn', ['remoet', 'tiny', 'remote@r2']]],
  );
});
