/** Rerankers behind each server's form of request and answer decide as the same model run here. */
import test, { type ExecutionContext } from 'ava';
import type { ScoreJob, ScoreOutcome } from '../../../../src/engine/engine.ts';
import { job, probabilitiesOf, startEngine, terms } from '../../support/engine.ts';
import { RERANK_SERVERS } from '../../support/http-models/rerank.ts';
import { entailmentGraph, modelsFolder, tokenId, writePackage } from '../../support/packages.ts';
import { rerankOptions, servedReranker, startRemoteScene } from '../../support/remote-packages.ts';

const REQUESTS = [
  job({ input: 'abcabc', choices: ['abc', 'xyz'] }),
  job({ input: 'banana', choices: ['10', '9', 'x"b\\c', 'ä{input}', 'zzz', 'z'] }),
  job({ input: 'zb', choices: Array.from({ length: 80 }, (_, i) => `z${i}`) }),
];
const CANARY = { input: 'abc', instruction: 'abc', choices: ['a', 'zz'], choice: 'zz' };

/** Decisions of the same model in an engine. */
async function decidedHere(t: ExecutionContext): Promise<readonly ScoreOutcome[]> {
  const modelsDir = await modelsFolder(t);
  const options = {
    ...{ graph: 'model.onnx', tokenizer: 'tokenizer.json', hypothesis: 'it is {choice}', temperature: 1 },
    ...{ entailment: 0, contradiction: 2, special_tokens: { cls: tokenId('[CLS]'), sep: tokenId('[SEP]') } },
  };
  const graph = entailmentGraph('z');
  await writePackage(modelsDir, {
    id: 'here',
    graph,
    manifest: { family: 'nli-cross-encoder', canary: CANARY, options },
  });
  const engine = await startEngine(t, { modelsDir });
  return await Promise.all(REQUESTS.map((each) => engine.score({ ...each, model: 'here' }, terms())));
}

for (const server of RERANK_SERVERS) {
  test.serial(`${server}: the same decisions as here, whatever the order of its results`, async (t) => {
    const expected = await decidedHere(t);
    const options = rerankOptions(server);
    const scene = await startRemoteScene(t, await servedReranker(server), { options, manifest: { canary: CANARY } });
    for (const [i, request] of REQUESTS.entries()) {
      const asked = { ...request, model: 'remote' };
      const here = probabilitiesOf(request, expected[i] as ScoreOutcome);
      const there = probabilitiesOf(request, await scene.engine.score(asked, terms()));
      for (const choice of request.choices) {
        t.true(Math.abs((here[choice] as number) - (there[choice] as number)) < 1e-5, choice);
      }
    }
    const seen = scene.server.requests.slice(-3);
    t.deepEqual(seen.map(({ rows }) => rows).sort(), [16, 32, 32]);
    const again = await scene.engine.score({ ...(REQUESTS[2] as ScoreJob), model: 'remote' }, terms());
    t.is(again.kind, 'scored');
    const digests = (from: number) => new Set(scene.server.requests.slice(from).map(({ digest }) => digest));
    t.deepEqual(digests(-3), new Set(seen.map(({ digest }) => digest)), 'the same requests, to the byte');
  });
}
