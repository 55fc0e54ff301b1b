/** The dialect by its newer name, and a server that asks who calls. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { eventually, job, startEngine, terms } from '../../support/engine.ts';
import { EMBEDDING_OPTIONS, writeInferencePackage } from '../../support/inference-packages.ts';
import { problemsIn } from '../../support/inference-scene.ts';
import { startInferenceServer } from '../../support/inference-server.ts';
import { encoderGraph, modelsFolder } from '../../support/packages.ts';

test.serial('a token goes along with every call, and is read anew when it was refused', async (t) => {
  const server = await startInferenceServer(t, { graph: encoderGraph(), output: 'embedding' });
  server.behaviour.token = 'first-token';
  const modelsDir = await modelsFolder(t);
  const options = { ...EMBEDDING_OPTIONS, dialect: 'open-inference' };
  const folder = await writeInferencePackage(modelsDir, server.address, {
    manifest: { family: 'remote', options: { ...options, server: { address: server.address, token_file: 'token' } } },
  });
  await writeFile(join(folder, 'token'), 'first-token\n');
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 });
  const request = job({ model: 'remote' });
  const outcome = await engine.score({ ...request, vector: true }, terms());
  t.is(outcome.kind === 'scored' ? outcome.vector?.length : 0, 8, 'a catalog can learn by its vectors');

  const status = () => engine.models()[0]?.status;
  server.behaviour.token = 'second-token';
  await eventually(() => status() === 'unavailable');
  await eventually(() => /UNAUTHENTICATED/.test(problemsIn(engine, 'a model cannot be served')));
  await writeFile(join(folder, 'token'), 'second-token\n');
  await eventually(() => status() === 'ready');
  t.is((await engine.score(request, terms())).kind, 'scored');
  t.notRegex(JSON.stringify(engine.log), /first-token|second-token/);
});
