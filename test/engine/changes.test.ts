/**
 * Packages that come, change and go while decisions are made; those that do not work are unavailable with the reason in
 * the log, the others serve, and what is mended comes back.
 */
import { rename, rm, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { DeadlineTooShort, ModelUnavailable } from '../../src/engine/errors.ts';
import { SLOW, statusOf } from '../support/slow-package.ts';
import { eventually, job, probabilitiesOf, startEngine, type TestEngine, terms } from './support/engine.ts';
import { keepDeciding } from './support/keep-deciding.ts';
import { encoderGraph, modelsFolder, TINY, writePackage } from './support/packages.ts';

const listed = (engine: TestEngine) =>
  engine
    .models()
    .map(({ id, revision, status, isDefault }) => `${id}@${revision} ${status}${isDefault ? ' default' : ''}`);

test('packages come, change and go without a failed request', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const engine = await startEngine(t, { modelsDir, engines: 2 });
  const deciding = keepDeciding(t, engine, () => job());

  // Written elsewhere and moved in at once, and written in place.
  const staging = await modelsFolder(t, { id: 'moved' });
  await rename(join(staging, 'moved'), join(modelsDir, 'moved'));
  await writePackage(modelsDir, { revision: 'r2' });
  await eventually(() => listed(engine).filter((line) => line.includes('ready')).length === 3);
  t.deepEqual(listed(engine), ['moved@r1 ready default', 'tiny@r1 ready', 'tiny@r2 ready default']);

  // The same revision with another graph: a new generation takes over.
  t.is(deciding.answers.size, 1);
  await writePackage(modelsDir, { graph: encoderGraph(5) });
  await eventually(() => deciding.answers.size === 2);

  // A change that is broken leaves what works.
  const made = deciding.made();
  await writeFile(join(modelsDir, 'tiny', 'r1', 'model.json'), '{');
  await eventually(() => engine.log.some(({ message }) => message === 'a model package is broken'));
  await eventually(() => deciding.made() > made + 50);
  t.is(listed(engine)[1], 'tiny@r1 ready');

  const named = () =>
    engine.log
      .filter(({ message }) => message === 'the plain name tiny means this revision now')
      .map(({ fields }) => fields);
  t.deepEqual(named(), [
    { model: 'tiny@r1', before: undefined },
    { model: 'tiny@r2', before: 'r1' },
  ]);
  await rm(join(modelsDir, 'tiny', 'r2'), { recursive: true });
  await rm(join(modelsDir, 'moved'), { recursive: true });
  await eventually(() => listed(engine).length === 1);
  t.deepEqual(listed(engine), ['tiny@r1 ready default']);
  t.deepEqual(named().at(-1), { model: 'tiny@r1', before: 'r2' });
  t.deepEqual(await deciding.stop(), {});
});

test('r10 takes the plain name from r9, and the log says that r9 claims it in vain', async (t) => {
  const modelsDir = await modelsFolder(t, { revision: 'r9' });
  const engine = await startEngine(t, { modelsDir });
  await writePackage(modelsDir, { revision: 'r10' });
  await eventually(() => listed(engine).join() === 'tiny@r9 ready,tiny@r10 ready default');
  const said = engine.log.filter(({ message }) => message.includes('claims the plain name'));
  const messages = said.map(({ message }) => message);
  t.deepEqual(messages, ['tiny@r9 claims the plain name, which tiny@r10 has']);
});

test('a revision is switched off and on by its manifest', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const engine = await startEngine(t, { modelsDir, scanIntervalMs: 60_000 });
  await writePackage(modelsDir, { manifest: { status: 'disabled' } });
  engine.reload();
  await eventually(() => listed(engine)[0] === 'tiny@r1 disabled default');
  await writePackage(modelsDir);
  engine.reload();
  await eventually(() => listed(engine)[0] === 'tiny@r1 ready default');
  t.is((await engine.score(job(), terms())).kind, 'scored');
});

test.serial('broken packages are unavailable with the reason in the log, and the others serve', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  await writeFile(join(await writePackage(modelsDir, { id: 'bad-json' }), 'model.json'), '{ "schema": 1, ');
  await unlink(join(await writePackage(modelsDir, { id: 'missing-file' }), 'model.onnx'));
  const tampered = await writePackage(modelsDir, { id: 'bad-sum' });
  await writeFile(join(tampered, 'model.onnx'), encoderGraph(3));
  t.is(encoderGraph(3).length, encoderGraph().length);
  await writePackage(modelsDir, { id: 'bad-graph', graph: Buffer.from('this is no graph') });
  await writePackage(modelsDir, { id: 'bad-options', options: { temperature: -1, graph: 7 } });
  await writePackage(modelsDir, {
    id: 'bad-canary',
    manifest: { canary: { input: 'abc', instruction: 'a', choices: ['abc', 'xyz'], choice: 'xyz' } },
  });
  await writePackage(modelsDir, { id: 'switched-off', manifest: { status: 'disabled' } });
  const engine = await startEngine(t, { modelsDir, modelRetryMs: 60_000 }, 'started');
  const failing = ['bad-json', 'missing-file', 'bad-sum', 'bad-graph', 'bad-options', 'bad-canary'];
  const reason = (id: string) =>
    engine.log.find(({ level, fields }) => level === 'error' && fields.model === `${id}@r1`)?.fields.problems;
  await eventually(() => statusOf(engine, 'tiny') === 'ready' && failing.every((id) => reason(id) !== undefined));
  for (const id of failing) t.is(statusOf(engine, id), 'unavailable', id);
  t.is(statusOf(engine, 'switched-off'), 'disabled');
  t.regex(String(reason('bad-json')), /model.json: is not JSON/);
  t.regex(String(reason('missing-file')), /model.onnx cannot be read: ENOENT/);
  t.regex(String(reason('bad-sum')), /model.onnx has SHA-256 [0-9a-f]{64}, but model.json says/);
  t.deepEqual(reason('bad-options'), [
    'options.graph must be a string',
    'options.temperature must be a number from 0.000001 to 1000000, or { "points": [[choices, temperature], …] }',
  ]);
  t.regex(String(reason('bad-canary')), /the canary chose "abc" instead of "xyz"/);
  t.is((await engine.score(job(), terms())).kind, 'scored');
  await t.throwsAsync(engine.score(job({ model: 'bad-sum' }), terms()), { instanceOf: ModelUnavailable });
});

test.serial('limits that cannot be served in time are refused', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW), largestRequestMs: 50 }, 'started');
  await eventually(() => engine.log.some(({ level }) => level === 'error'));
  t.is(statusOf(engine, 'slow'), 'unavailable');
  t.regex(JSON.stringify(engine.log), /the largest legal request takes \d+ ms on one core/);
});

test.serial(
  'a model whose largest request outlasts the default deadline decides what can be done in time',
  async (t) => {
    const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW), defaultDeadlineMs: 50 });
    t.is(statusOf(engine, 'slow'), 'ready');
    const warnings = engine.log.filter(({ message }) => message === 'a model is slow here');
    t.is(warnings.length, 1);
    t.regex(JSON.stringify(warnings), /slow@r1.*the largest legal request takes \d+ ms on one core.*more than 50 ms/);
    const request = job({ model: 'slow' });
    t.truthy(probabilitiesOf(request, await engine.score(request, terms())));
    await t.throwsAsync(engine.score(request, terms({ within: 1 })), { instanceOf: DeadlineTooShort });
  },
);

test.serial('an unavailable model comes back by itself when it is mended', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const folder = await writePackage(modelsDir, { id: 'mended', graph: Buffer.from('no graph') });
  const engine = await startEngine(t, { modelsDir, modelRetryMs: 100 }, 'started');
  t.false(engine.ready());
  await eventually(() => engine.log.some(({ fields }) => fields.model === 'mended@r1' && 'problems' in fields));
  // Once it has been tried, nobody need wait for it.
  await eventually(() => engine.ready());
  t.is(statusOf(engine, 'mended'), 'unavailable');
  await writePackage(modelsDir, { id: 'mended' });
  t.truthy(folder);
  await eventually(() => statusOf(engine, 'mended') === 'ready');
  const request = job({ model: 'mended' });
  t.truthy(probabilitiesOf(request, await engine.score(request, terms())));
});

test.serial('a missing models folder does not fail the start', async (t) => {
  const modelsDir = join(await modelsFolder(t), 'later');
  const engine = await startEngine(t, { modelsDir, scanIntervalMs: 100 }, 'started');
  t.deepEqual(engine.models(), []);
  t.false(engine.ready());
  await writePackage(modelsDir);
  await eventually(() => engine.ready());
  t.is((await engine.score(job(), terms())).kind, 'scored');
});
