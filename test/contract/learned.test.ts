/**
 * Who decided, a catalog that learned or a step of a cascade, as callers and operators see it: every protocol, the log,
 * the metrics and the traces say so.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test from 'ava';
import { createStoreBudget } from '../../src/stores/budget.ts';
import { basisOf, digestOf, type LearnedRecord } from '../../src/stores/catalog-additions.ts';
import { type CatalogRecord, UNBOUNDED } from '../../src/stores/catalog-store.ts';
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
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { startService } from '../support/service.ts';
import { runUmpire } from '../support/terminal.ts';
import { spansOf, startTraced } from '../support/traced-service.ts';

const budget = () => createStoreBudget(10_000);
const CHOICES = ['a', 'b', 'c'];
const QUESTION = { model: 'minilm-l6', input: 'x', instruction: 'y' };

/** A state that takes the last choice where the model takes the first. */
function stateFor(model: string, bias: readonly number[] = [0, 0, 5]): LearnedRecord {
  const state = { model, basis: basisOf(CHOICES, undefined), rung: 'bias', scale: 1, bias };
  const figures = { log_loss: 0.5, accuracy: 0.8, ece: 0.03 };
  return {
    ...state,
    examples: [4, 4, 4],
    before: figures,
    after: figures,
    learned_at: '2026-01-02T03:04:05.678Z',
    digest: digestOf(state),
  };
}

const record = (id: string, learned?: LearnedRecord): CatalogRecord => ({
  id,
  model: 'minilm-l6',
  choices: CHOICES,
  version: '1',
  visibility: 'private',
  createdAt: '2026-01-02T03:04:05.678Z',
  ...(learned === undefined ? {} : { additions: { learned } }),
});

test('the digest is in the header, the metadata, the log line, the span and the count; never without a learned decision', async (t) => {
  const embedded = await openEmbedded();
  const service = await startTraced(
    t,
    { UMPIRE_METRICS_PORT: '0', UMPIRE_DATA_DIR: embedded.folder },
    { engine: createScriptedEngine() },
  );
  t.teardown(() => embedded.close());
  const { key, headers } = await issueKey(embedded, 'acme');
  const own = stateFor('minilm-l6@r1');
  for (const each of [record('plain'), record('learned', own), record('foreign', stateFor('minilm-l6@r2'))])
    await embedded.catalogs.create('acme', each, UNBOUNDED, budget());

  const rest = await decide(service.port, { ...QUESTION, catalog: 'learned' }, headers);
  t.is(rest.status, 200, rest.text);
  t.is(rest.headers['x-umpire-learned'], own.digest);
  t.like(JSON.parse(rest.text).output, { choice: 'c' });
  t.is(JSON.parse(rest.text).model, 'minilm-l6@r1');
  const grpc = openGrpc(service.port);
  t.teardown(() => grpc.close());
  const metadata = { authorization: `Bearer ${key}` };
  const call = await callGrpc<{ decision: { output: { choice: string } } }>(
    grpc.decisions,
    'CreateDecision',
    { ...QUESTION, catalog: 'learned' },
    { metadata },
  );
  t.deepEqual(call.headers.get('x-umpire-learned'), [own.digest]);
  t.is(call.response?.decision.output.choice, 'c');

  // A catalog that learned nothing, one that learned for another revision, and choices of the request's own.
  const others = [
    { ...QUESTION, catalog: 'plain' },
    { ...QUESTION, catalog: 'foreign' },
    { ...QUESTION, catalog: 'foreign' },
    { ...QUESTION, choices: CHOICES },
  ];
  for (const body of others) {
    const { headers: answered, text } = await decide(service.port, body, headers);
    t.is(answered['x-umpire-learned'], undefined);
    t.is(JSON.parse(text).output.choice, 'a');
  }
  const revised = await decide(service.port, { ...QUESTION, model: 'minilm-l6@r2', catalog: 'foreign' }, headers);
  t.is(revised.headers['x-umpire-learned'], stateFor('minilm-l6@r2').digest);

  const lines = service.log.filter(({ learned }) => learned !== undefined).map(({ learned }) => learned);
  t.deepEqual(lines, [own.digest, own.digest, stateFor('minilm-l6@r2').digest]);
  const notices = service.log.filter(({ msg }) => String(msg).startsWith('what the catalog learned is for another'));
  t.is(notices.length, 1);
  t.like(notices[0], { owner: 'acme', catalog: 'foreign', learnedFor: 'minilm-l6@r2', model: 'minilm-l6@r1' });

  const counts = await scrape(metricsPortOf(service));
  t.is(counts.get('umpire_learned_decisions_total{model="minilm-l6@r1"}'), 2);
  t.is(counts.get('umpire_learned_decisions_total{model="minilm-l6@r2"}'), 1);
  const spans = await spansOf(t, service, 7);
  const marked = spans.filter(({ attributes }) => 'umpire.learned' in attributes);
  t.deepEqual(marked.map(({ attributes }) => attributes['umpire.learned']).toSorted(), [...lines].toSorted() as never);
});

const sound = stateFor('minilm-l6@r1');
const CUT_OFF = JSON.stringify({ learned: sound }).slice(0, -5);

test('a state that is broken never decides: 500 storage_corrupt, until it is replaced', async (t) => {
  const stores = await openEmbedded();
  const { headers } = await issueKey(stores, 'acme');
  const service = await startService({ UMPIRE_DATA_DIR: stores.folder }, { engine: createScriptedEngine() });
  t.teardown(async () => {
    await service.stop();
    await stores.close();
  });
  const answer = () => decide(service.port, { ...QUESTION, catalog: 'a' }, headers);
  // A server that decides by a sound state hears of it within a second, and of its replacement.
  await stores.catalogs.create('acme', record('a', sound), UNBOUNDED, budget());
  t.is((await answer()).headers['x-umpire-learned'], sound.digest);
  const database = new DatabaseSync(`${stores.folder}/umpire.db`);
  database.prepare("UPDATE catalogs SET additions = ?, stamp = 'tampered' WHERE id = 'a'").run(CUT_OFF);
  database.close();
  await until(async () => (await answer()).status !== 200, 3_000);
  const { status, headers: answered, text } = await answer();
  t.is(status, 500);
  t.is(JSON.parse(text).error.code, 'storage_corrupt');
  t.is(answered['x-umpire-learned'], undefined);
  // What is inside stays inside.
  t.notRegex(text, /scale|minilm|bias/);
  await stores.catalogs.delete('acme', 'a', budget());
  await stores.catalogs.create('acme', record('a'), UNBOUNDED, budget());
  await until(async () => (await answer()).status === 200, 3_000);
});

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
  const found = lines().map(({ step, away }) => [step, away]);
  t.deepEqual(found, [...new Array(3).fill(['other@r1', undefined]), ['tiny@r1', ['remote@r1']]]);
  const counts = await scrape(metricsPortOf(service));
  t.is(counts.get('umpire_step_decisions_total{model="cascade@r1",step="other@r1",away="no"}'), 3);
  t.is(counts.get('umpire_step_decisions_total{model="far@r1",step="tiny@r1",away="yes"}'), 1);
  // The process that asks tells of its calls from time to time.
  const calls = 'umpire_inference_calls_total{model="remote@r1",outcome="answered"}';
  await until(async () => ((await scrape(metricsPortOf(service))).get(calls) ?? 0) > 0);
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
