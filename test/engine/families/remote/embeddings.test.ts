/** Encoders behind `/v1/embeddings` decide as the same model run here, and catalogs learn by their vectors. */
import test from 'ava';
import { job, startEngine, terms } from '../../support/engine.ts';
import { embeddingsDialect } from '../../support/http-models/embeddings.ts';
import { startHttpModelServer } from '../../support/http-models/server.ts';
import { createEncoder } from '../../support/http-models/text-models.ts';
import { modelsFolder, TINY } from '../../support/packages.ts';
import {
  sameDecisions,
  servedEncoder,
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
