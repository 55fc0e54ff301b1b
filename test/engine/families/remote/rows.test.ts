/**
 * Rerankers and encoders behind each server's form of request and answer decide as the same model run here; texts that
 * a server does not read whole, scores that tell nothing apart, and tokens in clear.
 */
import test from 'ava';
import type { ScoreJob } from '../../../../src/engine/engine.ts';
import { eventually, job, startEngine, terms } from '../../support/engine.ts';
import { embeddingsDialect } from '../../support/http-models/embeddings.ts';
import { RERANK_SERVERS } from '../../support/http-models/rerank.ts';
import { startHttpModelServer } from '../../support/http-models/server.ts';
import { createEncoder } from '../../support/http-models/text-models.ts';
import { modelsFolder, TINY } from '../../support/packages.ts';
import {
  NLI,
  problemsIn,
  rerankOptions,
  sameDecisions,
  servedEncoder,
  servedReranker,
  startRemoteScene,
  TEXT_EMBEDDING_OPTIONS,
  writeRemotePackage,
} from '../../support/remote-packages.ts';

const REQUESTS = [
  job({ input: 'abcabc', choices: ['abc', 'xyz'] }),
  job({ input: 'banana', instruction: 'which {choice}', choices: ['10', '9', 'x"b\\c', 'ä{input}', 'aaa', 'a'] }),
  job({ input: 'zb', choices: Array.from({ length: 80 }, (_, i) => `z${i}`) }),
];

test.serial('the same decisions and vectors as here, whether choices are kept or read anew', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const server = await startHttpModelServer(t, await servedEncoder());
  const KEPT = { kept: true, anew: false };
  for (const [id, independent] of Object.entries(KEPT)) {
    const options = { ...TEXT_EMBEDDING_OPTIONS, batch: { rows: 20, independent } };
    await writeRemotePackage(modelsDir, server.address, { id, options });
  }
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 });
  for (const [id, kept] of Object.entries(KEPT)) {
    await sameDecisions(t, engine, REQUESTS, { models: [id] });
    const from = server.requests.length;
    await sameDecisions(t, engine, REQUESTS.slice(2), { models: [id] });
    const rows = server.requests.slice(from).map(({ rows }) => rows);
    t.deepEqual(rows.sort(), kept ? [2] : [2, 20, 20, 20, 20]);
    // Preparing encodes ahead, where that is of use.
    const [before, long] = [server.requests.length, 'a'.repeat(13)];
    t.deepEqual(await engine.prepare(job({ model: id, choices: ['one', 'two'] }), terms()), { kind: 'prepared' });
    t.is(server.requests.length - before, kept ? 1 : 0);
    t.like(await engine.prepare(job({ model: id, choices: ['b', long] }), terms()), { choice: long });
  }
});

test.serial('two names for premise and choices, and a width', async (t) => {
  const served = embeddingsDialect({ encoder: await createEncoder(), models: { q: 'a', p: 'b' }, maxTokens: 64 });
  const { model: _, ...others } = TEXT_EMBEDDING_OPTIONS;
  const options = { ...others, input_model: 'q', choice_model: 'p', dimensions: 4 };
  const { engine, server } = await startRemoteScene(t, served, { options });
  const outcome = await engine.score({ ...job({ model: 'remote' }), vector: true }, terms());
  t.is(outcome.kind === 'scored' ? outcome.vector?.length : 0, 4);
  const bodies = server.requests.slice(-2).map(({ body }) => body as { model: string; dimensions: number });
  t.deepEqual(bodies.map(({ model }) => model).sort(), ['p', 'q']);
  t.true(bodies.every(({ dimensions }) => dimensions === 4));
  const shorter = (answer: { data: { embedding: number[] }[] }) => ({
    ...answer,
    data: answer.data.map((each) => ({ ...each, embedding: each.embedding.slice(1) })),
  });
  server.behaviour.falsify = shorter as never;
  await t.throwsAsync(engine.score(job({ model: 'remote' }), terms()), {
    name: 'ModelUnavailable',
    message: /an embedding has 3 numbers/,
  });
});

test('the same decisions as here, whatever the server and the order of its results', async (t) => {
  const modelsDir = await modelsFolder(t, NLI);
  const canary = NLI.manifest.canary;
  const served = await Promise.all(
    RERANK_SERVERS.map(async (kind) => {
      const [id, server] = [kind.replace('.', '-'), await startHttpModelServer(t, await servedReranker(kind))];
      await writeRemotePackage(modelsDir, server.address, { id, options: rerankOptions(kind), manifest: { canary } });
      return { id, server };
    }),
  );
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 });
  for (const { id, server } of served) {
    await sameDecisions(t, engine, REQUESTS, { models: [id], within: 1e-5 });
    const seen = server.requests.slice(-3);
    t.deepEqual(seen.map(({ rows }) => rows).sort(), [16, 32, 32], id);
    const again = await engine.score({ ...(REQUESTS[2] as ScoreJob), model: id }, terms());
    t.is(again.kind, 'scored', id);
    const digests = (from: number) => new Set(server.requests.slice(from).map(({ digest }) => digest));
    t.deepEqual(digests(-3), new Set(seen.map(({ digest }) => digest)), `${id}: the same requests, to the byte`);
  }
});

const CANARY = { input: 'abc', instruction: 'abc', choices: ['a', 'zz'], choice: 'zz' };
/** Counts by bytes what the server counts by letters: a quarter of it. */
const BY_BYTES = { tokenizer: undefined, bytes_per_token: 4 };
const SMALL = { input_tokens: 20, candidate_tokens: 8, choices: 300 };

test.serial('a server refuses a text: the caller gets both counts, and the server is well', async (t) => {
  const modelsDir = await modelsFolder(t);
  const ids = { vllm: 'vllm', 'llama-cpp': 'llama.cpp', sglang: 'sglang', tei: 'tei' } as const;
  for (const [id, kind] of Object.entries(ids)) {
    const { address } = await startHttpModelServer(t, await servedReranker(kind, 48));
    const options = { ...rerankOptions(kind), ...BY_BYTES };
    await writeRemotePackage(modelsDir, address, { id, options, manifest: { canary: CANARY, limits: SMALL } });
  }
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 });
  for (const model of Object.keys(ids)) {
    const long = job({ model, input: 'z'.repeat(70), choices: ['a', 'zz'] });
    // The pair has three special tokens, and 'it is' before the choice.
    const expected = { kind: 'input_too_long', tokens: 70 + 3 + 4 + 1, limit: 48, atLeast: false } as const;
    for (let i = 0; i < 6; i++) t.deepEqual(await engine.score(long, terms()), expected, model);
    t.is((await engine.score(job({ model, choices: ['a', 'zz'] }), terms())).kind, 'scored', model);
  }
});

test.serial('a choice that an encoder refuses is named, as a decision is made and before', async (t) => {
  const served = embeddingsDialect({
    ...{ encoder: await createEncoder(), models: { encoder: '' } },
    ...{ maxTokens: 26, tooLong: 'vllm' as const },
  });
  const options = { ...TEXT_EMBEDDING_OPTIONS, ...BY_BYTES, cuts: 'refuses', batch: { independent: true } };
  const { engine } = await startRemoteScene(t, served, { options, manifest: { limits: SMALL } });
  const choices = ['abc', 'z'.repeat(30)];
  const expected = { kind: 'choice_too_long', choice: choices[1], tokens: 32, limit: 26 } as const;
  t.deepEqual(await engine.score(job({ model: 'remote', choices }), terms()), expected);
  const long = await engine.score(job({ model: 'remote', input: 'z'.repeat(60) }), terms());
  t.like(long, { kind: 'input_too_long', limit: 26, atLeast: false });
});

const logistic = (digits: number) => (answer: { results: { relevance_score: number }[] }) => ({
  ...answer,
  results: answer.results.map((each) => ({
    ...each,
    relevance_score: Number((1 / (1 + Math.exp(-3 * each.relevance_score))).toFixed(digits)),
  })),
});
const alike = (answer: { results: object[] }) => ({
  results: answer.results.map((each) => ({ ...each, relevance_score: 2 })),
});
const cut = (answer: { results: { relevance_score: number }[] }) => ({
  ...answer,
  results: answer.results.map((each) => ({ ...each, relevance_score: Math.max(1, each.relevance_score) })),
});
const FOUR = { ...CANARY, choices: ['a', 'b', 'c', 'zz'] };
test.serial('scores that tell nothing apart: the package does not serve, and the log says why', async (t) => {
  const modelsDir = await modelsFolder(t);
  const cases = {
    rounded: [{ scores: 'probability', raw: undefined }, logistic(0), /are saturated: 4 of the canary's 4/],
    cut: [{}, cut, /are cut off: most of the canary's are exactly 1/],
    alike: [{}, alike, /exactly 2/],
  } as const;
  for (const [id, [change, falsify]] of Object.entries(cases)) {
    const server = await startHttpModelServer(t, await servedReranker('llama.cpp'));
    server.behaviour.falsify = falsify as never;
    const options = { ...rerankOptions('llama.cpp'), ...change, batch: { rows: 4 } };
    const manifest = { canary: FOUR, limits: { ...SMALL, choices: 4 } };
    await writeRemotePackage(modelsDir, server.address, { id, options, manifest });
  }
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 }, 'started');
  const told = (id: string): string =>
    JSON.stringify(engine.log.filter(({ fields }) => fields.model === `${id}@r1`).map(({ fields }) => fields));
  for (const [id, [, , problem]] of Object.entries(cases)) await eventually(() => problem.test(told(id)));
  t.true(engine.models().every(({ status }) => status === 'unavailable'));
});

test.serial('a token that would travel in clear is told of', async (t) => {
  const modelsDir = await modelsFolder(t);
  const options = { ...rerankOptions('tei'), server: { token_env: 'UMPIRE_TOKEN_THAT_IS_NOT_SET' } };
  await writeRemotePackage(modelsDir, 'nowhere.example:80', { options, manifest: { canary: CANARY } });
  const engine = await startEngine(t, { modelsDir }, 'started');
  await eventually(() =>
    /UMPIRE_TOKEN_THAT_IS_NOT_SET is not set/.test(problemsIn(engine, 'a model cannot be served')),
  );
  const told = engine.log.filter(({ message }) => message === 'a token is sent in clear: give its server tls');
  const found = told.map(({ level, fields }) => ({ level, ...fields }));
  t.deepEqual(found, [{ level: 'warn', model: 'remote@r1', address: 'nowhere.example:80' }]);
});
