/** Servers that take long, refuse and answer nonsense, and callers that leave. */
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import test from 'ava';
import { type ModelInferResponse, ModelInferResponseSchema } from '../../../../gen/inference/grpc_predict_v2_pb.ts';
import {
  DeadlineTooShort,
  EngineOverloaded,
  JobCanceled,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../../../../src/engine/errors.ts';
import { eventually, job, startEngine, terms } from '../../support/engine.ts';
import { EMBEDDING_OPTIONS, writeInferencePackage } from '../../support/inference-packages.ts';
import { problemsIn, startScene } from '../../support/inference-scene.ts';
import { startInferenceServer } from '../../support/inference-server.ts';
import { encoderGraph, modelsFolder } from '../../support/packages.ts';

const request = job({ model: 'remote' });

test.serial('a deadline is passed on, and kept while the server dawdles', async (t) => {
  const { engine, server } = await startScene(t, { timeout_ms: 4000 });
  const from = server.requests.length;
  await engine.score(request, terms({ within: 3000 }));
  await engine.score(request, terms({ within: 30_000 }));
  const given = server.requests.slice(from).map(({ within }) => within);
  t.true(given.every((within) => within <= 4000));
  t.true(
    given.slice(0, 2).every((within) => within <= 3000),
    String(given),
  );

  server.behaviour.delay = 2000;
  const began = performance.now();
  await t.throwsAsync(engine.score(request, terms({ within: 500 })), { instanceOf: JobDeadlinePassed });
  t.true(performance.now() - began < 1900);
  await eventually(() => server.requests.slice(-2).every(({ canceled }) => canceled));
});

test.serial('a deadline that the process keeps a moment before the pool does is a deadline still', async (t) => {
  const { engine, server } = await startScene(t);
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

test.serial('a caller that leaves is given up at the server, too', async (t) => {
  const { engine, server } = await startScene(t);
  server.behaviour.delay = 3000;
  const leaving = new AbortController();
  const from = server.requests.length;
  let released = 0;
  const going = engine.score(request, terms({ signal: leaving.signal, released: () => released++ }));
  await eventually(() => server.requests.length > from);
  leaving.abort();
  await t.throwsAsync(going, { instanceOf: JobCanceled });
  await eventually(() => server.requests.slice(from).every(({ canceled }) => canceled));
  await eventually(() => released === 1);
  t.deepEqual(engine.stats().inference[0]?.inFlight, 0);
});

test.serial(
  'a server that gets slow is asked no more than it may be, and who would wait too long is refused at once',
  async (t) => {
    const { engine, server } = await startScene(t, { in_flight: { requests: 2 } });
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

test.serial('an unavailable call is made again once, and others are not', async (t) => {
  const { engine, server } = await startScene(t, {
    joint_weight: 0,
    rows: { ...EMBEDDING_OPTIONS.rows, joint: undefined },
  });
  const asked = async (code: number, times: number): Promise<number> => {
    const from = server.requests.length;
    server.behaviour.status = { code, details: 'for a test' };
    server.behaviour.statusFor = times;
    await engine.score(job({ model: 'remote', choices: ['abc', 'xyz'] }), terms()).catch(() => {});
    server.behaviour.status = undefined;
    return server.requests.length - from;
  };
  t.is(await asked(status.UNAVAILABLE, 1), 3);
  const { retries = 0 } = engine.stats().inference[0] ?? {};
  await eventually(() => (engine.stats().inference[0]?.retries ?? 0) >= 1 || retries >= 1);
  for (const code of [status.INTERNAL, status.INVALID_ARGUMENT, status.RESOURCE_EXHAUSTED]) {
    t.true((await asked(code, 1)) <= 2);
  }
});

test.serial('what a server says of a failure reaches neither the caller nor the log', async (t) => {
  const { engine, server } = await startScene(t);
  server.behaviour.status = { code: status.INTERNAL, details: 'secret: abc abd' };
  const error = await t.throwsAsync(engine.score(request, terms()), { instanceOf: ModelUnavailable });
  t.notRegex(String(error?.message), /secret/);
  const logged = problemsIn(engine, 'an inference server failed at a decision');
  t.regex(logged, /INTERNAL/);
  t.notRegex(JSON.stringify(engine.log), /secret/);
});

test.serial('a server that fails again and again is left alone until its canary is right', async (t) => {
  const { engine, server, status: stateOf } = await startScene(t, { timeout_ms: 1000 });
  server.behaviour.status = { code: status.INTERNAL, details: 'of the canary' };
  for (let i = 0; i < 5; i++) await t.throwsAsync(engine.score(request, terms()), { instanceOf: ModelUnavailable });
  await eventually(() => stateOf() === 'unavailable');
  t.regex(problemsIn(engine, 'a model cannot be served'), /again and again/);
  // What it says of the package's own texts is logged.
  await eventually(() => /of the canary/.test(problemsIn(engine, 'a model cannot be served')));
  const from = server.requests.length;
  for (let i = 0; i < 20; i++) await engine.score(request, terms()).catch(() => {});
  t.true(server.requests.length - from < 20);
  server.behaviour.status = undefined;
  await eventually(() => stateOf() === 'ready');

  // Answers that never come count, too.
  server.behaviour.delay = 4000;
  for (let i = 0; i < 5; i++) await engine.score(request, terms()).catch(() => {});
  await eventually(() => stateOf() === 'unavailable');
  server.behaviour.delay = 0;
  await eventually(() => stateOf() === 'ready');
});

const change = (response: ModelInferResponse, changes: object): ModelInferResponse =>
  create(ModelInferResponseSchema, { ...response, ...changes } as never);
const [floats, halves] = [(count: number) => new Uint8Array(4 * count), (count: number) => new Uint8Array(2 * count)];
const output = (response: ModelInferResponse, changes: object) =>
  change(response, { outputs: [{ ...(response.outputs[0] as object), ...changes }] });
const nonsense: Readonly<Record<string, (response: ModelInferResponse) => ModelInferResponse>> = {
  'no output': (response) => change(response, { outputs: [], rawOutputContents: [] }),
  'another name': (response) => output(response, { name: 'other' }),
  'another datatype': (response) => output(response, { datatype: 'FP16' }),
  'a row too few': (response) => output(response, { shape: [0n, 8n] }),
  'a row too many': (response) => output(response, { shape: [9n, 8n] }),
  'another width': (response) => output(response, { shape: [response.outputs[0]?.shape[0] ?? 1n, 4n] }),
  'one more dimension': (response) => output(response, { shape: [1n, 1n, 8n] }),
  'too few values': (response) => change(response, { rawOutputContents: [floats(3)] }),
  'half a value': (response) => change(response, { rawOutputContents: [halves(3)] }),
  'no values': (response) => change(response, { rawOutputContents: [] }),
  'not a number': (response) =>
    change(response, { rawOutputContents: response.rawOutputContents.map((raw) => new Uint8Array(raw).fill(0xff)) }),
  'no direction': (response) =>
    change(response, { rawOutputContents: response.rawOutputContents.map((raw) => new Uint8Array(raw.length)) }),
  "another request's id": (response) => change(response, { id: 'another' }),
  'more than a message may hold': (response) => change(response, { rawOutputContents: [new Uint8Array(2 ** 21)] }),
};

test.serial('nonsense is no decision: a log line, and unavailable for the caller', async (t) => {
  const { engine, server, status } = await startScene(t, { message_bytes: 65_536 });
  for (const [name, falsify] of Object.entries(nonsense)) {
    await eventually(() => status() === 'ready');
    const before = engine.log.length;
    server.behaviour.falsify = falsify;
    await t.throwsAsync(engine.score(request, terms()), { instanceOf: ModelUnavailable }, name);
    server.behaviour.falsify = (response) => response;
    t.true(
      engine.log.slice(before).some(({ message }) => message === 'an inference server failed at a decision'),
      name,
    );
  }
  await eventually(() => status() === 'ready');
  t.like(await engine.score(request, terms()), { kind: 'scored' });
});

const tensor = (name: string, datatype: string, shape: readonly bigint[]) => ({ name, datatype, shape: [...shape] });

test.serial('a model that is not what the package says is never served', async (t) => {
  const inputs = [tensor('input_ids', 'INT64', [-1n, -1n])];
  const outputs = [tensor('embedding', 'FP32', [-1n, 8n])];
  const sound = await startScene(t, {}, { served: { metadata: { inputs, outputs } } });
  t.is(sound.status(), 'ready');
  for (const [metadata, expected] of [
    [{ inputs: [tensor('ids', 'INT64', [-1n, -1n])], outputs }, /no input \\"input_ids\\"/],
    [{ inputs, outputs: [tensor('embedding', 'FP64', [-1n, 8n])] }, /is FP64 at the server/],
    [{ inputs, outputs: [tensor('embedding', 'FP32', [-1n, 16n])] }, /has the shape \[-1,16\] at the server/],
  ] as const) {
    const { engine, status, server } = await startScene(t, {}, { until: 'started', served: { metadata } });
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
