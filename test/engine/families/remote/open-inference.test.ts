/**
 * Models at servers of the Open Inference Protocol: their decisions are those of the same graph in an engine of one's
 * own; servers that take long, fail again and again, go away, or have another model.
 */
import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { Tokenizer } from '@huggingface/tokenizers';
import test from 'ava';
import {
  DeadlineTooShort,
  EngineOverloaded,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../../../../src/engine/errors.ts';
import { eventually, job, probabilitiesOf, startEngine, terms } from '../../support/engine.ts';
import { startInferenceServer } from '../../support/inference-server.ts';
import { encoderGraph, modelsFolder, TINY, TOKENIZER_DEFINITION, tokenId } from '../../support/packages.ts';
import {
  EMBEDDING_OPTIONS,
  LOGIT_OPTIONS,
  NLI,
  problemsIn,
  sameDecisions,
  startInferenceScene,
  writeInferencePackage,
} from '../../support/remote-packages.ts';

const ENCODER = { graph: encoderGraph(), output: 'embedding' };

const REQUESTS = [
  { input: 'abc abd', instruction: 'which', choices: ['abc', 'xyz'] },
  { input: 'a b c d e f', instruction: 'one of {choice}', choices: ['a', 'b', 'ab', 'abc', 'abcd', 'zz', '1'] },
  { input: '[SEP] $& {input}', instruction: 'q', choices: Array.from({ length: 120 }, (_, i) => `choice ${i}`) },
  { input: '🙂', instruction: '?', choices: ['🙂', '', ' '].filter((choice) => choice !== '') },
];

for (const [name, independent] of [
  ['that keeps vectors', true],
  ['whose rows may depend on each other', false],
] as const) {
  test.serial(`an encoder ${name} decides as a bi-encoder here, limits included`, async (t) => {
    const server = await startInferenceServer(t, { ...ENCODER, typed: !independent });
    const modelsDir = await modelsFolder(t, TINY);
    await writeInferencePackage(modelsDir, server.address, { options: { batch: { rows: 5, independent } } });
    const engine = await startEngine(t, { modelsDir });
    await sameDecisions(t, engine, REQUESTS);
    const limits: readonly (readonly [string, readonly string[]])[] = [
      ['a'.repeat(37), ['a', 'b']],
      ['a '.repeat(400), ['a', 'b']],
      ['a', ['b', 'a'.repeat(13)]],
      ['!'.repeat(1 << 20), ['a', 'b']],
    ];
    for (const [input, choices] of limits) {
      const request = { input, choices, instruction: 'abcd' };
      const here = await engine.score(job(request), terms());
      t.not(here.kind, 'scored');
      t.deepEqual(await engine.score(job({ ...request, model: 'remote' }), terms()), here);
    }
  });
}

test.serial('a cross-encoder decides as one here', async (t) => {
  const { canary } = NLI.manifest;
  const server = await startInferenceServer(t, { graph: NLI.graph, output: 'logits' });
  const modelsDir = await modelsFolder(t, NLI);
  const int32 = LOGIT_OPTIONS.inputs.map((input) => ({ ...input, datatype: 'INT32' }));
  await writeInferencePackage(modelsDir, server.address, { options: LOGIT_OPTIONS, manifest: { canary } });
  await writeInferencePackage(modelsDir, server.address, {
    id: 'remote32',
    options: { ...LOGIT_OPTIONS, inputs: int32 },
    manifest: { canary },
  });
  const engine = await startEngine(t, { modelsDir });
  const more = [...REQUESTS, { input: 'zz z', instruction: 'z', choices: ['z', 'zzz', 'a z', 'q'] }];
  await sameDecisions(t, engine, more, { models: ['remote', 'remote32'] });
});

test.serial('a server that tokenises itself is sent texts', async (t) => {
  const tokenizer = new Tokenizer(TOKENIZER_DEFINITION, {});
  const [cls, sep] = [tokenId('[CLS]'), tokenId('[SEP]')];
  const server = await startInferenceServer(t, {
    ...ENCODER,
    idsOf: ({ texts }) =>
      BigInt64Array.from([cls, ...tokenizer.encode(texts.text ?? '', { add_special_tokens: false }).ids, sep], BigInt),
  });
  const modelsDir = await modelsFolder(t, { options: { joint_weight: 0 } });
  const rows = { choice: { text: '{choice}' }, input: { text: '{input}' } };
  for (const [id, shape, count] of [
    ['flat', [-1], { bytes_per_token: 1, tokenizer: undefined }],
    ['column', [-1, 1], {}],
  ] as const) {
    const inputs = [{ name: 'text', datatype: 'BYTES', shape }];
    await writeInferencePackage(modelsDir, server.address, {
      id,
      options: { ...EMBEDDING_OPTIONS, inputs, rows, joint_weight: undefined, ...count },
    });
  }
  const engine = await startEngine(t, { modelsDir });
  await sameDecisions(t, engine, REQUESTS.slice(0, 2), { models: ['flat', 'column'] });
  // Without a tokenizer its bytes are counted.
  t.like(await engine.score(job({ model: 'flat', input: 'äb', instruction: 'c' }), terms()), { inputTokens: 4 });
});

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
