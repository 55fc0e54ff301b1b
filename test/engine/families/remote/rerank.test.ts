/** Rerankers behind each server's form of request and answer decide as the same model run here. */
import test from 'ava';
import type { ScoreJob } from '../../../../src/engine/engine.ts';
import { job, startEngine, terms } from '../../support/engine.ts';
import { RERANK_SERVERS } from '../../support/http-models/rerank.ts';
import { modelsFolder } from '../../support/packages.ts';
import { NLI, rerankOptions, sameDecisions, servedReranker, startRemoteScene } from '../../support/remote-packages.ts';

const REQUESTS = [
  job({ input: 'abcabc', choices: ['abc', 'xyz'] }),
  job({ input: 'banana', choices: ['10', '9', 'x"b\\c', 'ä{input}', 'zzz', 'z'] }),
  job({ input: 'zb', choices: Array.from({ length: 80 }, (_, i) => `z${i}`) }),
];
for (const server of RERANK_SERVERS) {
  test.serial(`${server}: the same decisions as here, whatever the order of its results`, async (t) => {
    const here = await startEngine(t, { modelsDir: await modelsFolder(t, NLI) });
    const source = { options: rerankOptions(server), manifest: { canary: NLI.manifest.canary } };
    const scene = await startRemoteScene(t, await servedReranker(server), source);
    await sameDecisions(t, here, REQUESTS, { by: scene.engine, within: 1e-5 });
    const seen = scene.server.requests.slice(-3);
    t.deepEqual(seen.map(({ rows }) => rows).sort(), [16, 32, 32]);
    const again = await scene.engine.score({ ...(REQUESTS[2] as ScoreJob), model: 'remote' }, terms());
    t.is(again.kind, 'scored');
    const digests = (from: number) => new Set(scene.server.requests.slice(from).map(({ digest }) => digest));
    t.deepEqual(digests(-3), new Set(seen.map(({ digest }) => digest)), 'the same requests, to the byte');
  });
}
