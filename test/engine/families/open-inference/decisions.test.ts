/** Decisions by an inference server are those of the same graph in an engine of one's own. */

import { Tokenizer } from '@huggingface/tokenizers';
import test from 'ava';
import { job, startEngine, terms } from '../../support/engine.ts';
import { startInferenceServer } from '../../support/inference-server.ts';
import { encoderGraph, modelsFolder, TINY, TOKENIZER_DEFINITION, tokenId } from '../../support/packages.ts';
import {
  EMBEDDING_OPTIONS,
  LOGIT_OPTIONS,
  NLI,
  sameDecisions,
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

test.serial('vectors of choices are kept only where rows are independent, and preparing encodes ahead', async (t) => {
  const server = await startInferenceServer(t, ENCODER);
  const modelsDir = await modelsFolder(t);
  await writeInferencePackage(modelsDir, server.address, { id: 'kept', options: { batch: { independent: true } } });
  await writeInferencePackage(modelsDir, server.address, { id: 'fresh' });
  const engine = await startEngine(t, { modelsDir });
  const rowsOf = async (work: () => Promise<unknown>): Promise<number> => {
    const before = server.requests.length;
    await work();
    return server.requests.slice(before).reduce((sum, { rows }) => sum + rows, 0);
  };
  const choices = ['one', 'two', 'three'];
  for (const [model, prepared, decided] of [
    ['kept', 3, 2],
    ['fresh', 0, 5],
  ] as const) {
    const request = job({ model, choices });
    t.is(await rowsOf(() => engine.prepare(request, terms())), prepared);
    t.is(await rowsOf(() => engine.score(request, terms())), decided);
    t.is(await rowsOf(() => engine.score(request, terms())), decided);
    const long = 'a'.repeat(13);
    t.like(await engine.prepare(job({ model, choices: ['b', long] }), terms()), {
      kind: 'choice_too_long',
      choice: long,
    });
  }
  const [fresh, kept] = engine.stats().inference;
  t.deepEqual([fresh?.model, kept?.model], ['fresh@r1', 'kept@r1']);
});
