/**
 * Decisions by a catalog that learned: every protocol, the log, the metrics and the traces say so, in both
 * kinds of store.
 */
import { DatabaseSync } from 'node:sqlite';
import test from 'ava';
import { createStoreBudget } from '../../src/stores/budget.ts';
import { basisOf, digestOf, type LearnedRecord } from '../../src/stores/catalog-additions.ts';
import { type CatalogRecord, UNBOUNDED } from '../../src/stores/catalog-store.ts';
import { callGrpc, openGrpc } from '../support/grpc.ts';
import { decide } from '../support/http.ts';
import { issueKey } from '../support/keys.ts';
import { openEmbedded, openStores } from '../support/open-stores.ts';
import { startRedis, until } from '../support/redis.ts';
import { metricsPortOf, scrape } from '../support/scrape.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { startService } from '../support/service.ts';
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
  const embedded = await openEmbedded();
  const redis = await startRedis();
  const inRedis = await openStores({ REDIS_URL: redis.url });
  t.teardown(async () => {
    await inRedis.close();
    await redis.stop();
    await embedded.close();
  });
  const places = [
    {
      env: { UMPIRE_DATA_DIR: embedded.folder },
      stores: embedded,
      async write(id: string, additions: string) {
        const database = new DatabaseSync(`${embedded.folder}/umpire.db`);
        database
          .prepare("UPDATE catalogs SET additions = ?, stamp = 'tampered' || length(stamp) WHERE id = ?")
          .run(additions, id);
        database.close();
      },
    },
    {
      env: { REDIS_URL: redis.url },
      stores: inRedis,
      write: (id: string, additions: string) =>
        redis.command('HSET', `umpire:{acme}:catalog:${id}`, 'additions', additions, 'stamp', `${Math.random()}`),
    },
  ];
  for (const { env, stores, write } of places) {
    const { headers } = await issueKey(stores, 'acme');
    const create = (id: string, state?: LearnedRecord) =>
      stores.catalogs.create('acme', record(id, state), UNBOUNDED, budget());
    const service = await startService(env, { engine: createScriptedEngine() });
    const answer = (catalog: string) => decide(service.port, { ...QUESTION, catalog }, headers);
    try {
      // A server that decides by a sound state hears of it within a second, and of its replacement.
      await create('a', sound);
      t.is((await answer('a')).headers['x-umpire-learned'], sound.digest);
      await write('a', CUT_OFF);
      await until(async () => (await answer('a')).status !== 200, 3_000);
      const { status, headers: answered, text } = await answer('a');
      t.is(status, 500);
      t.is(JSON.parse(text).error.code, 'storage_corrupt');
      t.is(answered['x-umpire-learned'], undefined);
      // What is inside stays inside.
      t.notRegex(text, /scale|minilm|bias/);
      await stores.catalogs.delete('acme', 'a', budget());
      await create('a');
      await until(async () => (await answer('a')).status === 200, 3_000);
    } finally {
      await service.stop();
    }
  }
});
