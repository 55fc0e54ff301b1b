/** Rerankers behind each server's form of request and answer decide as the same model run here. */
import test from 'ava';
import type { ScoreJob } from '../../../../src/engine/engine.ts';
import { job, startEngine, terms } from '../../support/engine.ts';
import { RERANK_SERVERS } from '../../support/http-models/rerank.ts';
import { startHttpModelServer } from '../../support/http-models/server.ts';
import { modelsFolder } from '../../support/packages.ts';
import {
  NLI,
  rerankOptions,
  sameDecisions,
  servedReranker,
  writeRemotePackage,
} from '../../support/remote-packages.ts';

const REQUESTS = [
  job({ input: 'abcabc', choices: ['abc', 'xyz'] }),
  job({ input: 'banana', choices: ['10', '9', 'x"b\\c', 'ä{input}', 'zzz', 'z'] }),
  job({ input: 'zb', choices: Array.from({ length: 80 }, (_, i) => `z${i}`) }),
];

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
