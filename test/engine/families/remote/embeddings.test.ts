/** Encoders behind `/v1/embeddings` decide as the same model run here, and catalogs learn by their vectors. */
import test from 'ava';
import { job, startEngine, terms } from '../../support/engine.ts';
import { embeddingsDialect } from '../../support/http-models/embeddings.ts';
import { createEncoder } from '../../support/http-models/text-models.ts';
import { modelsFolder, TINY } from '../../support/packages.ts';
import {
  sameDecisions,
  servedEncoder,
  startRemoteScene,
  TEXT_EMBEDDING_OPTIONS,
} from '../../support/remote-packages.ts';

const REQUESTS = [
  job({ input: 'abcabc', choices: ['abc', 'xyz'] }),
  job({ input: 'banana', instruction: 'which {choice}', choices: ['10', '9', 'x"b\\c', 'ä{input}', 'aaa', 'a'] }),
  job({ input: 'zb', choices: Array.from({ length: 80 }, (_, i) => `z${i}`) }),
];

for (const independent of [true, false]) {
  test.serial(`the same decisions and vectors as here, choices ${independent ? 'kept' : 'read anew'}`, async (t) => {
    const here = await startEngine(t, { modelsDir: await modelsFolder(t, TINY) });
    const options = { ...TEXT_EMBEDDING_OPTIONS, batch: { rows: 20, independent } };
    const { engine, server } = await startRemoteScene(t, await servedEncoder(), { options });
    await sameDecisions(t, here, REQUESTS, { by: engine });
    const from = server.requests.length;
    await sameDecisions(t, here, REQUESTS.slice(2), { by: engine });
    const rows = server.requests.slice(from).map(({ rows }) => rows);
    t.deepEqual(rows.sort(), independent ? [2] : [2, 20, 20, 20, 20]);
  });
}

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
