/**
 * What callers are told of models at servers of HTTP: their limits as of any model, and whether they can decide now.
 */
import test from 'ava';
import { startHttpModelServer } from '../engine/support/http-models/server.ts';
import { modelsFolder, TINY } from '../engine/support/packages.ts';
import {
  rerankOptions,
  servedEncoder,
  servedReranker,
  TEXT_EMBEDDING_OPTIONS,
  writeRemotePackage,
} from '../engine/support/remote-packages.ts';
import { decide } from '../support/http.ts';
import { until } from '../support/redis.ts';
import { startService } from '../support/service.ts';

/** Milliseconds that a change at a server may take to be seen on a busy machine. */
const PATIENCE = 45_000;
const LIMITS = { input_tokens: 40, candidate_tokens: 12, choices: 20 };

test.serial('GET /v1/models lists them beside local ones, with limits, and follows their servers', async (t) => {
  t.timeout(180_000);
  const [encoder, ranker] = [
    await startHttpModelServer(t, await servedEncoder()),
    await startHttpModelServer(t, await servedReranker('tei')),
  ];
  ranker.behaviour.token = 'right';
  process.env.UMPIRE_TOKEN_LISTED = 'right';
  const modelsDir = await modelsFolder(t, TINY);
  const canary = { input: 'zzz', instruction: 'abc', choices: ['a', 'zz'], choice: 'zz' };
  await writeRemotePackage(modelsDir, encoder.address, {
    id: 'encoder',
    options: TEXT_EMBEDDING_OPTIONS,
    manifest: { limits: LIMITS },
  });
  await writeRemotePackage(modelsDir, ranker.address, {
    id: 'ranker',
    options: { ...rerankOptions('tei'), server: { token_env: 'UMPIRE_TOKEN_LISTED' } },
    manifest: { limits: { ...LIMITS, choices: 300 }, canary },
  });
  const service = await startService({ UMPIRE_MODELS_DIR: modelsDir });
  t.teardown(async () => {
    await service.stop();
    delete process.env.UMPIRE_TOKEN_LISTED;
  });
  const read = async (path: string) => await (await fetch(service.url + path)).json();
  const described = (id: string, status: string, choices: number, of: object = LIMITS) => ({
    ...{ id, object: 'model', owned_by: 'tests', status },
    limits: { ...of, choices },
  });
  t.deepEqual(await read('/v1/models'), {
    object: 'list',
    data: [described('encoder', 'ready', 20), described('ranker', 'ready', 300), described('tiny', 'ready', 300)],
  });

  // One that goes away is told of, and no other; so is one that refuses the token.
  await encoder.kill();
  await until(
    async () => ((await read('/v1/models/encoder')) as { status: string }).status === 'unavailable',
    PATIENCE,
  );
  t.deepEqual(await read('/v1/models/encoder@r1'), described('encoder', 'unavailable', 20));
  t.like(await read('/v1/models/ranker'), { status: 'ready' });
  await encoder.revive();
  await until(async () => ((await read('/v1/models/encoder')) as { status: string }).status === 'ready', PATIENCE);

  ranker.behaviour.token = 'another';
  const decision = { model: 'ranker', input: 'abc', instruction: 'which', choices: ['abc', 'zz'] };
  t.is((await decide(service.port, decision)).status, 503);
  await until(async () => ((await read('/v1/models/ranker')) as { status: string }).status === 'unavailable', PATIENCE);
  t.deepEqual(await read('/v1/models/ranker'), described('ranker', 'unavailable', 300));
  t.like(await read('/v1/models/tiny'), { status: 'ready' });
});
