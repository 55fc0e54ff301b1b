/**
 * The composition root: what it brings itself it closes, what it was given it leaves, and it listens only
 * when it is told to.
 */

import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { createApp } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import { createLogger } from '../src/logger.ts';
import { createStores } from '../src/stores/create-stores.ts';
import type { Stores } from '../src/stores/stores.ts';
import { send } from './support/http.ts';
import { listen } from './support/listening.ts';
import { createScriptedEngine } from './support/scripted-engine.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const logger = createLogger('silent', { write: () => {} });
const configOf = (env: Record<string, string> = {}) =>
  readConfig({ PORT: '0', HOST: '127.0.0.1', UMPIRE_DATA_DIR: temporaryFolder(), UMPIRE_DRAIN_DELAY: '0', ...env });

test('an engine and stores that were given are left open; work does not stop with them', async (t) => {
  const config = configOf();
  let closed = 0;
  const engine = createScriptedEngine();
  engine.close = async () => {
    closed += 1;
  };
  const opened = await createStores(config.store, logger);
  const stores: Stores = {
    ...opened,
    close: async () => {
      closed += 1;
    },
  };
  const app = await createApp(config, logger, { engine, stores });
  const port = await app.start();
  t.is((await send(port, { path: '/health/ready' })).status, 200);
  await app.stop();
  t.is(closed, 0);
  await opened.close();
});

test('a port that is taken fails the start, and the app can still be stopped', async (t) => {
  const holder = createServer();
  const port = await listen(holder);
  const app = await createApp(configOf({ PORT: String(port) }), logger, { engine: createScriptedEngine() });
  await t.throwsAsync(app.start(), { code: 'EADDRINUSE' });
  await app.stop();
  holder.close();
});

test('two apps in one process do not know of each other', async (t) => {
  const apps = await Promise.all([1, 2].map(() => createApp(configOf(), logger, { engine: createScriptedEngine() })));
  const ports = await Promise.all(apps.map((app) => app.start()));
  const [first] = apps;
  await first?.stop();
  const [, second = 0] = ports;
  t.is((await send(second, { path: '/health/ready' })).status, 200);
  await Promise.all(apps.slice(1).map((app) => app.stop()));
});

test('nothing listens before start', async (t) => {
  const app = await createApp(configOf(), logger, { engine: createScriptedEngine() });
  t.true(app.health.ready);
  t.false(app.health.draining);
  const port = await app.start();
  t.true(port > 0);
  await app.stop();
  t.true(app.health.draining);
  t.false(app.health.ready);
});

test('where the settings say so the port opens once the models are ready', async (t) => {
  const engine = createScriptedEngine();
  engine.isReady = false;
  const lines: string[] = [];
  const waiting = createLogger('info', { write: (line) => lines.push(line) });
  const app = await createApp(configOf({ UMPIRE_LISTEN_WHEN: 'ready' }), waiting, { engine });
  const started = app.start();
  const opened = (): boolean => lines.some((line) => line.includes('"msg":"listening"'));
  await sleep(150);
  t.false(opened());
  engine.isReady = true;
  const port = await started;
  t.is((await send(port, { path: '/health/ready' })).status, 200);
  await app.stop();
});

test('stopped before its models were ready, it never listens', async (t) => {
  const engine = createScriptedEngine();
  engine.isReady = false;
  const app = await createApp(configOf({ UMPIRE_LISTEN_WHEN: 'ready' }), logger, { engine });
  const started = app.start();
  await app.stop();
  t.is(await started, 0);
});
