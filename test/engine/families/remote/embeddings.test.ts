/** Encoders behind `/v1/embeddings` decide as the same model run here, and catalogs learn by their vectors. */
import test from 'ava';
import { job, probabilitiesOf, startEngine, terms } from '../../support/engine.ts';
import { embeddingsDialect } from '../../support/http-models/embeddings.ts';
import { createEncoder } from '../../support/http-models/text-models.ts';
import { modelsFolder, TINY } from '../../support/packages.ts';
import { servedEncoder, startRemoteScene, TEXT_EMBEDDING_OPTIONS } from '../../support/remote-packages.ts';

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
    const decide = async (request: (typeof REQUESTS)[number]) => {
      const expected = await here.score({ ...request, vector: true }, terms());
      const found = await engine.score({ ...request, model: 'remote', vector: true }, terms());
      if (expected.kind !== 'scored' || found.kind !== 'scored') return t.fail(`${expected.kind} ${found.kind}`);
      const [one, other] = [probabilitiesOf(request, expected), probabilitiesOf(request, found)];
      for (const choice of request.choices) {
        t.true(Math.abs((one[choice] as number) - (other[choice] as number)) < 1e-6, choice);
      }
      t.is(found.vector?.length, 8);
      for (const [i, value] of (expected.vector ?? []).entries()) {
        t.true(Math.abs(value - (found.vector?.[i] ?? Number.NaN)) < 1e-6);
      }
    };
    for (const request of REQUESTS) await decide(request);
    const from = server.requests.length;
    const [, , request = job()] = REQUESTS;
    await decide(request);
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
