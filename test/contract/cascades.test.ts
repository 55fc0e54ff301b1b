/** A cascade as callers and operators see it: header, metadata, log, metric, span, list of models, catalogs. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { writeCascade } from '../engine/support/cascades.ts';
import { startHttpModelServer } from '../engine/support/http-models/server.ts';
import { encoderGraph, modelsFolder, TINY } from '../engine/support/packages.ts';
import { servedEncoder, TEXT_EMBEDDING_OPTIONS, writeRemotePackage } from '../engine/support/remote-packages.ts';
import { callGrpc, openGrpc } from '../support/grpc.ts';
import { DECIDE, decide, send } from '../support/http.ts';
import { issueKey } from '../support/keys.ts';
import { openEmbedded } from '../support/open-stores.ts';
import { until } from '../support/redis.ts';
import { metricsPortOf, scrape } from '../support/scrape.ts';
import { runUmpire } from '../support/terminal.ts';
import { startTraced } from '../support/traced-service.ts';

const BODY = { model: 'cascade', input: 'abc abd', instruction: 'which', choices: ['abc', 'xyz'] };

test('who answered is said in every protocol, in the log, the metric and the span; the answer names the cascade', async (t) => {
  const server = await startHttpModelServer(t, await servedEncoder());
  const modelsDir = await modelsFolder(t, TINY, { id: 'other', graph: encoderGraph(3) });
  await writeRemotePackage(modelsDir, server.address, { options: TEXT_EMBEDDING_OPTIONS });
  const steps = [{ model: 'tiny', sure: 1 }, { model: 'other' }];
  await writeCascade(modelsDir, { steps });
  await writeCascade(modelsDir, { steps: [...steps.slice(0, 1), { model: 'remote' }], if_away: 'answer' }, 'far');
  const stores = await openEmbedded();
  t.teardown(() => stores.close());
  const env = { UMPIRE_METRICS_PORT: '0', UMPIRE_DATA_DIR: stores.folder, UMPIRE_MODELS_DIR: modelsDir };
  const service = await startTraced(t, env);
  const { key, headers } = await issueKey(stores, 'acme');
  const { port } = service;
  const statusOf = async (id: string) => JSON.parse((await send(port, { path: `/v1/models/${id}` })).text);
  await until(async () => (await statusOf('cascade')).status === 'ready');
  t.deepEqual(await statusOf('cascade'), {
    id: 'cascade',
    object: 'model',
    owned_by: 'tests',
    status: 'ready',
    limits: { input_tokens: 40, candidate_tokens: 12, choices: 300 },
  });

  const rest = await decide(port, BODY);
  t.is(rest.status, 200, rest.text);
  t.is(rest.headers['x-umpire-step'], 'other@r1');
  t.is(JSON.parse(rest.text).model, 'cascade@r1');
  t.is((await send(port, { path: DECIDE, body: JSON.stringify(BODY) })).headers['x-umpire-step'], 'other@r1');
  const grpc = openGrpc(port);
  t.teardown(() => grpc.close());
  t.deepEqual((await callGrpc(grpc.decisions, 'CreateDecision', BODY)).headers.get('x-umpire-step'), ['other@r1']);
  t.is((await decide(port, { ...BODY, model: 'tiny' })).headers['x-umpire-step'], undefined);
  await server.kill();
  await until(async () => (await statusOf('remote')).status === 'unavailable');
  const left = await decide(port, { ...BODY, model: 'far' });
  t.is(left.headers['x-umpire-step'], 'tiny@r1; away=remote@r1', left.text);

  const lines = () =>
    service.log.filter(({ msg, model }) => msg === 'request' && /^(cascade|far)@r1$/.test(String(model)));
  await until(() => lines().length === 4);
  t.deepEqual(
    lines().map(({ step, away }) => [step, away]),
    [...new Array(3).fill(['other@r1', undefined]), ['tiny@r1', ['remote@r1']]],
  );
  const counts = await scrape(metricsPortOf(service));
  t.is(counts.get('umpire_step_decisions_total{model="cascade@r1",step="other@r1",away="no"}'), 3);
  t.is(counts.get('umpire_step_decisions_total{model="far@r1",step="tiny@r1",away="yes"}'), 1);
  const said = () =>
    service.receiver.spans.map(
      ({ attributes: { 'umpire.step': step, 'umpire.steps_away': away } }) => `${step} ${away}`,
    );
  await until(() => said().includes('other@r1 undefined') && said().includes('tiny@r1 remote@r1'));

  // A catalog belongs to the cascade, and learns from what that answers.
  const draft = { id: 'teams', model: 'cascade', choices: BODY.choices };
  t.is((await send(port, { path: '/v1/catalogs', body: JSON.stringify(draft), headers })).status, 201);
  const examples = join(stores.folder, 'examples.jsonl');
  const rows = Array.from({ length: 60 }, (_, i) => {
    return JSON.stringify({
      input: `${'abcdefgh'[i % 8]}x a${i}`,
      instruction: 'which',
      label: i % 8 < 4 ? 'xyz' : 'abc',
    });
  });
  writeFileSync(examples, rows.join('\n'));
  const learned = await runUmpire(['learn', '--owner', 'acme', '--catalog', 'teams', examples], { env });
  t.is(learned.status, 0, learned.out + learned.err);
  t.regex(learned.out, /deciding 60 examples with cascade@r1[\s\S]*learned \w+ for cascade@r1/);
  const { choices: _, ...question } = BODY;
  await until(async () => {
    const { headers: answered } = await decide(
      port,
      { ...question, catalog: 'teams' },
      { authorization: `Bearer ${key}` },
    );
    return answered['x-umpire-learned'] !== undefined && answered['x-umpire-step'] === 'other@r1';
  });
  t.pass();
});
