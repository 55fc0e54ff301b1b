/**
 * A whole service whose only model is scored by a server: what callers and operators see of it while it is there and
 * while it is not.
 */
import test from 'ava';
import { startInferenceServer } from '../engine/support/inference-server.ts';
import { encoderGraph, modelsFolder } from '../engine/support/packages.ts';
import { writeInferencePackage } from '../engine/support/remote-packages.ts';
import { json } from '../support/answers.ts';
import { decide } from '../support/http.ts';
import { until } from '../support/redis.ts';
import { startService } from '../support/service.ts';
import { runUmpire } from '../support/terminal.ts';

/** Milliseconds that a change at the server may take to be seen on a busy machine. */
const PATIENCE = 45_000;
const SERVED = { graph: encoderGraph(), output: 'embedding' };
const LIMITS = { input_tokens: 40, candidate_tokens: 12, choices: 20 };

test.serial('listed, unavailable and ready again; counted, timed, and silent about the server', async (t) => {
  const server = await startInferenceServer(t, SERVED);
  const modelsDir = await modelsFolder(t);
  await writeInferencePackage(modelsDir, 'nowhere.example:1', { manifest: { limits: LIMITS } });
  const service = await startService({
    UMPIRE_MODELS_DIR: modelsDir,
    UMPIRE_INFERENCE_SERVERS: `remote=${server.address}`,
    UMPIRE_METRICS_PORT: '0',
  });
  t.teardown(() => service.stop());
  const ask = () =>
    decide(service.port, { model: 'remote', input: 'abc', instruction: 'which', choices: ['abc', 'xyz'] });
  const read = async (path: string) => await (await fetch(service.url + path)).json();
  const described = (status: string) => ({
    ...{ id: 'remote', object: 'model', owned_by: 'tests', status },
    limits: LIMITS,
  });
  const listed = (status: string) =>
    until(async () => ((await read('/v1/models/remote')) as { status: string }).status === status, PATIENCE);
  t.deepEqual(await read('/v1/models'), { object: 'list', data: [described('ready')] });

  const good = await ask();
  t.is(good.status, 200);
  const decision = json(good) as { model: string; output: { choice: string; probabilities: object } };
  t.is(decision.model, 'remote@r1');
  t.is(decision.output.choice, 'abc');
  t.is(
    Object.values(decision.output.probabilities).reduce((sum, each) => sum + each, 0),
    1,
  );

  server.behaviour.fault = { code: 13, details: `secret of ${server.address}` };
  const refused = await ask();
  t.is(refused.status, 503);
  t.true(Number(refused.headers['retry-after']) >= 1);
  const { text: body } = refused;
  t.like(json(refused), { error: { type: 'model_error', code: 'model_unavailable', param: 'model' } });
  t.false(body.includes('secret') || body.includes(server.address) || body.includes('INTERNAL'));
  server.behaviour.fault = undefined;

  await server.kill();
  await listed('unavailable');
  t.deepEqual(await read('/v1/models/remote@r1'), described('unavailable'));
  t.is((await fetch(`${service.url}/health/ready`)).status, 503);
  t.is((await ask()).status, 503);
  await server.revive();
  await listed('ready');
  t.is((await ask()).status, 200);

  const port = service.log.find(({ msg }) => msg === 'metrics')?.metricsPort;
  const samples = async () => await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  // The process that asks tells of its calls from time to time.
  const counted = /umpire_inference_calls_total\{model="remote@r1",outcome="refused"\} [1-9]/;
  await until(async () => counted.test(await samples()), PATIENCE);
  const text = await samples();
  t.regex(text, /umpire_inference_calls_total\{model="remote@r1",outcome="answered"\} [1-9]/);
  t.regex(text, /umpire_inference_rows_total\{model="remote@r1"\} [1-9]/);
  t.regex(text, /umpire_inference_tokens_total\{model="remote@r1",direction="in"\} 0/);
  t.regex(text, /umpire_inference_decisions_limit\{model="remote@r1"\} 8/);
  t.regex(text, /umpire_model_ready\{model="remote@r1"\} 1/);
});

test.serial('umpire models check asks the server', async (t) => {
  const server = await startInferenceServer(t, SERVED);
  const modelsDir = await modelsFolder(t);
  await writeInferencePackage(modelsDir, 'nowhere.example:1', { manifest: { limits: LIMITS } });
  const check = async (address: string): Promise<string> => {
    const env = { UMPIRE_MODELS_DIR: modelsDir, UMPIRE_INFERENCE_SERVERS: address };
    const { out, err } = await runUmpire(['models', 'check'], { env });
    return out + err;
  };
  const sound = await check(`remote=${server.address}`);
  t.regex(sound, /remote@r1: sound/);
  t.regex(sound, /16 tokens, 8 choices: [\d.]+ ms with its inference server/);
  server.behaviour.modelReady = false;
  t.regex(
    await check(`remote=${server.address}`),
    /remote@r1: cannot be told, its inference server is away\n.*says that encoder is not ready/,
  );
  t.regex(await check('remote'), /UMPIRE_INFERENCE_SERVERS: must be/);
});
