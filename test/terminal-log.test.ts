/** The log on a terminal is for people, and elsewhere for programs. */
import { PassThrough } from 'node:stream';
import test from 'ava';
import { createLogSink } from '../src/logger.ts';

async function logged(isTTY: boolean, write: (logger: ReturnType<typeof createLogSink>['logger']) => void) {
  const output = Object.assign(new PassThrough(), { isTTY });
  const { logger, flush } = createLogSink('debug', output);
  write(logger);
  await flush();
  return String(output.read() ?? '');
}

const LISTENING = {
  version: '1.0.0',
  pid: 7,
  host: '::',
  port: 8080,
  tls: false,
  engines: 2,
  store: '/data/umpire.db',
};

test('a start says where it listens, who may ask, and what to read', async (t) => {
  const text = await logged(true, (logger) => logger.info(LISTENING, 'listening'));
  t.regex(text, new RegExp(`^${new Date().toTimeString().slice(0, 3)}`));
  t.regex(text, /^\d\d:\d\d:\d\d Umpire 1\.0\.0 listens on http:\/\/localhost:8080: whoever reaches this machine/);
  for (const said of ['/data/umpire.db', 'billing shipping\n', 'docs/asking-well.md', 'Ctrl+C'])
    t.true(text.includes(said), said);
  t.notRegex(text, /[{}]/);
  const greetings = await logged(true, (logger) => {
    logger.info({ ...LISTENING, host: '::1', tls: true }, 'listening');
    logger.info({ ...LISTENING, host: '127.0.0.1' }, 'listening');
    logger.info({ ...LISTENING, port: '/run/umpire.sock' }, 'listening');
  });
  t.true(greetings.includes('billing shipping --url https://[::1]:8080\n'));
  for (const place of ['https://[::1]:8080\n', 'http://127.0.0.1:8080\n', 'the Unix socket /run/umpire.sock\n'])
    t.true(greetings.includes(` listens on ${place}`), place);
});

test('requests, other lines and errors are each one that can be read', async (t) => {
  const lines = await logged(true, (logger) => {
    const decided = { method: 'POST', route: '/v1/decisions', status: 200, durationMs: 4.2, model: 'umpire-mini@r10' };
    logger.info({ requestId: 'req_1', ...decided }, 'request');
    const refusal = { method: 'GET', route: '/v1/models', status: 503, durationMs: 1, reason: 'STORE_UNAVAILABLE' };
    logger.info({ ...refusal, cause: 'disk is full' }, 'request');
    logger.info({ model: 'umpire-mini@r10' }, 'a model is ready');
    logger.warn({ models: ['x'] }, 'there is no package of models that are to be served');
    logger.error({ err: new Error('no such thing') }, 'failed');
    logger.info({}, 'stopped');
  });
  const [request, refused, ready, warning, failed, ...rest] = lines
    .split('\n')
    .map((line) => line.replace(/^[\d:]{8} /, ''));
  t.is(request, 'POST /v1/decisions 200 4.2 ms umpire-mini@r10');
  t.is(refused, 'GET /v1/models 503 1 ms STORE_UNAVAILABLE disk is full');
  t.is(ready, 'a model is ready (model=umpire-mini@r10)');
  t.is(warning, 'WARN there is no package of models that are to be served (models=["x"])');
  t.is(failed, 'ERROR failed');
  t.is(rest[0], 'Error: no such thing');
  t.is(rest.at(-2), 'stopped');
});

test('where there is no terminal, each line is JSON', async (t) => {
  const text = await logged(false, (logger) => logger.info(LISTENING, 'listening'));
  t.like(JSON.parse(text), { msg: 'listening', ...LISTENING });
});
