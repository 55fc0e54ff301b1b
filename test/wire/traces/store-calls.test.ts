/** Calls to the store in traces: each lies in the stage that made it. */
import { randomBytes } from 'node:crypto';
import test from 'ava';
import { type Call, send } from '../../support/http.ts';
import { issueKey } from '../../support/keys.ts';
import { openStores } from '../../support/open-stores.ts';
import { startRedis, until } from '../../support/redis.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import {
  BODY,
  nesting,
  PARENT,
  PATIENCE,
  type ReceivedSpan,
  serverOf,
  startTraced,
  type Traced,
} from '../../support/traced-service.ts';

/**
 * Sends a request in a trace of its own until the store has answered in time, as on a busy machine it may not, and the
 * key is no news any more. The answer with its spans.
 */
async function traced(
  service: Traced,
  call: Call,
): Promise<{ readonly status: number; readonly spans: readonly ReceivedSpan[] }> {
  for (let tries = 0; ; tries += 1) {
    const trace = randomBytes(16).toString('hex');
    const { status } = await send(service.port, {
      ...call,
      headers: { ...call.headers, traceparent: `00-${trace}-${PARENT}-01` },
    });
    if (status === 503 && tries < 50) continue;
    const own = (): readonly ReceivedSpan[] => service.receiver.spans.filter(({ traceId }) => traceId === trace);
    await until(() => own().some(({ kind }) => kind === 'SPAN_KIND_SERVER'), PATIENCE);
    return { status, spans: own() };
  }
}

test('calls to the store lie in the stage that made them, and say nothing of the owner or the catalog', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const stores = await openStores({ REDIS_URL: redis.url });
  const { headers } = await issueKey(stores, 'secret-owner');
  await stores.close();
  const service = await startTraced(
    t,
    { REDIS_URL: redis.url, UMPIRE_RATE_KEY: '1000/s' },
    { engine: createScriptedEngine() },
  );
  const created = await traced(service, {
    path: '/v1/catalogs',
    headers,
    body: JSON.stringify({ id: 'secret-catalog', model: 'minilm-l6', choices: BODY.choices }),
  });
  t.is(created.status, 201);
  t.is(serverOf(created.spans).attributes['umpire.caller'], 'key');
  t.deepEqual(nesting(t, created.spans), [
    'POST /v1/catalogs > admission',
    // The key, and its limits.
    'admission > store',
    'admission > store',
    'POST /v1/catalogs > decode',
    // Whether the catalog exists, and its creation.
    'POST /v1/catalogs > store',
    'POST /v1/catalogs > store',
  ]);

  const { choices: _, ...inline } = BODY;
  const decided = await traced(service, { headers, body: JSON.stringify({ ...inline, catalog: 'secret-catalog' }) });
  t.is(decided.status, 200);
  t.deepEqual(nesting(t, decided.spans), [
    'POST /v1/decisions > admission',
    // The limits; the key is known by now.
    'admission > store',
    'POST /v1/decisions > decode',
    'POST /v1/decisions > store',
    'POST /v1/decisions > engine',
    'engine > queue',
    'engine > tokenize',
    'engine > infer',
  ]);
  for (const { name, attributes } of service.receiver.spans) {
    t.notRegex(JSON.stringify({ name, attributes }), /secret|ump_live/);
  }
});
