/** Log lines when nobody reads them: bounded, counted, and no reason to stay. On a terminal they are for people. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { createLogStream } from '../src/log-stream.ts';
import { createLogSink } from '../src/logger.ts';
import { NO_LIMITS } from '../src/mock/start-mock.ts';
import { CHILD_ENV } from './support/child-env.ts';
import { send } from './support/http.ts';
import { lightModel } from './support/light-model.ts';
import { outputOf } from './support/output.ts';
import { until } from './support/redis.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

/** An output that takes a block only when it is read. */
function pipeWithoutReader() {
  const taken: string[] = [];
  let release: (() => void) | undefined;
  let open = false;
  const output = new Writable({
    decodeStrings: false,
    write(block: string | Buffer, _encoding, done) {
      taken.push(block.toString());
      if (open) done();
      else release = done;
    },
  });
  const read = (): void => {
    open = true;
    release?.();
  };
  return { output, read, text: () => taken.join('') };
}

const line = (number: number): string => `${JSON.stringify({ number, text: 'x'.repeat(90) })}\n`;

test('what nobody reads is bounded and counted; whoever reads again gets whole lines and is told what is missing', async (t) => {
  const { output, read, text } = pipeWithoutReader();
  const stream = createLogStream(output, { maxBytes: 100_000 });
  for (let number = 0; number < 5_000; number++) stream.write(line(number));
  t.true(output.writableLength <= 100_000, `${output.writableLength} bytes wait`);
  const dropped = stream.dropped();
  t.true(dropped > 3_000 && dropped < 4_900, `${dropped} dropped`);
  read();
  await stream.flush(1_000);
  const lines = text()
    .trimEnd()
    .split('\n')
    .map((json) => JSON.parse(json) as Record<string, unknown>);
  t.is(lines.filter(({ number }) => number !== undefined).length, 5_000 - dropped);
  t.like(lines.at(-1), { level: 'warn', dropped });
  stream.write(line(1));
  await stream.flush(1_000);
  t.is(stream.dropped(), dropped);
  t.true(text().endsWith(line(1)));
});

test.serial('what waits takes little more memory than its bytes, and the bound counts bytes', (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const used = (): number => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const { output } = pipeWithoutReader();
  const { logger, dropped } = createLogSink('info', output);
  const before = used();
  for (let number = 0; dropped() === 0; number++) {
    logger.info(
      { request: `req_${number}`, route: '/v1/decisions', status: 200, ms: number / 7, model: 'é' },
      'answered',
    );
  }
  const grown = (used() - before) / 2 ** 20;
  t.true(output.writableLength <= 16 * 2 ** 20, `${output.writableLength} bytes wait`);
  t.true(output.writableLength > 15.9 * 2 ** 20, `${output.writableLength} bytes wait`);
  t.true(grown < 20, `${grown} MiB for 16 MiB of lines`);
});

test('lines wait for one another, and not for long', async (t) => {
  const { output, read, text } = pipeWithoutReader();
  read();
  const stream = createLogStream(output, { interval: 20 });
  stream.write(line(1));
  t.is(text(), '');
  await sleep(100);
  t.is(text(), line(1));
});

test('the end of the process waits for its lines no longer than it was told', async (t) => {
  const stream = createLogStream(pipeWithoutReader().output);
  stream.write(line(1));
  const began = performance.now();
  await stream.flush(50);
  t.true(performance.now() - began < 5_000);
});

test('an output whose reader left fails nothing', async (t) => {
  const output = new Writable({ write: (_block, _encoding, done) => done(new Error('EPIPE')) });
  const stream = createLogStream(output);
  stream.write(line(1));
  await stream.flush(1_000);
  await sleep(10);
  stream.write(line(2));
  t.is(stream.dropped(), 1);
});

test('a server whose log nobody reads answers, and ends when it is told to', async (t) => {
  t.timeout(60_000);
  const child = spawn(process.execPath, [fileURLToPath(new URL('../src/main.ts', import.meta.url))], {
    env: {
      ...CHILD_ENV,
      PORT: '0',
      HOST: '127.0.0.1',
      UMPIRE_ENGINES: '1',
      UMPIRE_MODELS_DIR: lightModel(),
      UMPIRE_DATA_DIR: temporaryFolder(),
      UMPIRE_DRAIN_DELAY: '0',
      ...NO_LIMITS,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output = outputOf(child.stdout);
  const port = (): number => Number(/"port":(\d+)/.exec(output())?.[1] ?? 0);
  await until(async () => port() > 0, 30_000);
  child.stdout.pause();
  // More lines than a pipe and the reader's own buffer hold.
  for (let round = 0; round < 100; round++) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(port(), { path: '/v1/models/none' })));
    for (const { status } of answers) t.is(status, 404);
  }
  child.kill('SIGTERM');
  await once(child, 'exit');
  t.is(child.exitCode, 0);
});

test('what acts on a screen is escaped on its way to the log, and the line says the same', async (t) => {
  const { output, read, text } = pipeWithoutReader();
  read();
  const { logger, flush } = createLogSink('info', output);
  const callerRequestId = 'a\u009b31m\u007f\u202e\u2028\u001b[2Jé';
  logger.info({ callerRequestId }, 'request');
  await flush();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not occur
  t.notRegex(text(), /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e\u2028]/);
  t.like(JSON.parse(text()), { callerRequestId });
});

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
    const decided = { method: 'POST', route: '/v1/decisions', status: 200, durationMs: 4.2, model: 'umpire-mini@r11' };
    logger.info({ requestId: 'req_1', ...decided }, 'request');
    const refusal = { method: 'GET', route: '/v1/models', status: 503, durationMs: 1, reason: 'STORE_UNAVAILABLE' };
    logger.info({ ...refusal, cause: 'disk is full' }, 'request');
    logger.info({ model: 'umpire-mini@r11' }, 'a model is ready');
    logger.warn({ models: ['x'] }, 'there is no package of models that are to be served');
    logger.error({ err: new Error('no such thing') }, 'failed');
    logger.info({}, 'stopped');
  });
  const [request, refused, ready, warning, failed, ...rest] = lines
    .split('\n')
    .map((line) => line.replace(/^[\d:]{8} /, ''));
  t.is(request, 'POST /v1/decisions 200 4.2 ms umpire-mini@r11');
  t.is(refused, 'GET /v1/models 503 1 ms STORE_UNAVAILABLE disk is full');
  t.is(ready, 'a model is ready (model=umpire-mini@r11)');
  t.is(warning, 'WARN there is no package of models that are to be served (models=["x"])');
  t.is(failed, 'ERROR failed');
  t.is(rest[0], 'Error: no such thing');
  t.is(rest.at(-2), 'stopped');
});

test('where there is no terminal, each line is JSON', async (t) => {
  const text = await logged(false, (logger) => logger.info(LISTENING, 'listening'));
  t.like(JSON.parse(text), { msg: 'listening', ...LISTENING });
});
