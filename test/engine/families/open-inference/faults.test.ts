/** Servers of the Open Inference Protocol that take long, fail again and again, or have another model. */
import { status } from '@grpc/grpc-js';
import test from 'ava';
import {
  DeadlineTooShort,
  EngineOverloaded,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../../../../src/engine/errors.ts';
import { eventually, job, startEngine, terms } from '../../support/engine.ts';
import { startInferenceServer } from '../../support/inference-server.ts';
import { encoderGraph, modelsFolder } from '../../support/packages.ts';
import { problemsIn, startInferenceScene, writeInferencePackage } from '../../support/remote-packages.ts';

const request = job({ model: 'remote' });

test.serial('a deadline is passed on', async (t) => {
  const { engine, server } = await startInferenceScene(t, { timeout_ms: 4000 });
  const from = server.requests.length;
  await engine.score(request, terms({ within: 3000 }));
  await engine.score(request, terms({ within: 30_000 }));
  const given = server.requests.slice(from).map(({ within }) => within);
  t.true(given.every((within) => within <= 4000));
  t.true(
    given.slice(0, 2).every((within) => within <= 3000),
    String(given),
  );
});

test.serial('a deadline that the process keeps a moment before the pool does is a deadline still', async (t) => {
  const { engine, server } = await startInferenceScene(t);
  server.behaviour.delay = 400;
  for (let round = 0; round < 12; round += 1) {
    const asked = Array.from({ length: 8 }, (_, index) => engine.score(request, terms({ within: 60 + 5 * index })));
    for (const outcome of await Promise.allSettled(asked)) {
      t.is(outcome.status, 'rejected');
      if (outcome.status !== 'rejected') continue;
      const { reason } = outcome;
      t.true(
        [JobDeadlinePassed, EngineOverloaded, DeadlineTooShort].some((kind) => reason instanceof kind),
        String(reason),
      );
    }
  }
});

test.serial(
  'a server that gets slow is asked no more than it may be, and who would wait too long is refused at once',
  async (t) => {
    const { engine, server } = await startInferenceScene(t, { in_flight: { requests: 2 } });
    server.behaviour.delay = 100;
    // The pool learns what a decision takes now.
    for (let i = 0; i < 20; i++) await Promise.all([engine.score(request, terms()), engine.score(request, terms())]);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 60 }, () => engine.score(request, terms({ within: 1500 }))),
    );
    const refused = outcomes.filter((each) => each.status === 'rejected' && each.reason instanceof EngineOverloaded);
    t.true(refused.length > 0);
    for (const each of refused) t.true(((each as PromiseRejectedResult).reason as EngineOverloaded).retryAfter >= 1);
    t.true(outcomes.some(({ status }) => status === 'fulfilled'));
    t.true(server.busiest <= 2, String(server.busiest));
  },
);

test.serial('a server that fails again and again is left alone until its canary is right', async (t) => {
  const { engine, server, status: stateOf } = await startInferenceScene(t, { timeout_ms: 1000 });
  server.behaviour.fault = { code: status.INTERNAL, details: 'of the canary' };
  for (let i = 0; i < 5; i++) await t.throwsAsync(engine.score(request, terms()), { instanceOf: ModelUnavailable });
  await eventually(() => stateOf() === 'unavailable');
  t.regex(problemsIn(engine, 'a model cannot be served'), /again and again/);
  // What it says of the package's own texts is logged.
  await eventually(() => /of the canary/.test(problemsIn(engine, 'a model cannot be served')));
  const from = server.requests.length;
  for (let i = 0; i < 20; i++) await engine.score(request, terms()).catch(() => {});
  t.true(server.requests.length - from < 20);
  server.behaviour.fault = undefined;
  await eventually(() => stateOf() === 'ready');

  // Answers that never come count, too.
  server.behaviour.delay = 4000;
  for (let i = 0; i < 5; i++) await engine.score(request, terms()).catch(() => {});
  await eventually(() => stateOf() === 'unavailable');
  server.behaviour.delay = 0;
  await eventually(() => stateOf() === 'ready');
});

const tensor = (name: string, datatype: string, shape: readonly bigint[]) => ({ name, datatype, shape: [...shape] });

test.serial('a model that is not what the package says is never served', async (t) => {
  const inputs = [tensor('input_ids', 'INT64', [-1n, -1n])];
  const outputs = [tensor('embedding', 'FP32', [-1n, 8n])];
  const sound = await startInferenceScene(t, {}, { served: { metadata: { inputs, outputs } } });
  t.is(sound.status(), 'ready');
  for (const [metadata, expected] of [
    [{ inputs: [tensor('ids', 'INT64', [-1n, -1n])], outputs }, /no input \\"input_ids\\"/],
    [{ inputs, outputs: [tensor('embedding', 'FP64', [-1n, 8n])] }, /is FP64 at the server/],
    [{ inputs, outputs: [tensor('embedding', 'FP32', [-1n, 16n])] }, /has the shape \[-1,16\] at the server/],
  ] as const) {
    const { engine, status, server } = await startInferenceScene(t, {}, { until: 'started', served: { metadata } });
    await eventually(() => expected.test(problemsIn(engine, 'a model cannot be served')));
    t.is(status(), 'unavailable');
    t.is(server.requests.length, 0);
  }
});

test.serial('a wrong canary keeps a model from being served', async (t) => {
  const server = await startInferenceServer(t, { graph: encoderGraph(), output: 'embedding' });
  const modelsDir = await modelsFolder(t);
  const canary = { input: 'abcabc', instruction: 'abc', choices: ['xyz', 'abc'], choice: 'xyz' };
  await writeInferencePackage(modelsDir, server.address, { manifest: { canary } });
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 }, 'started');
  await eventually(() => /the canary chose/.test(problemsIn(engine, 'a model cannot be served')));
  t.is(engine.models()[0]?.status, 'unavailable');
});
