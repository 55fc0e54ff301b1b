/**
 * The guides' clients run where a caller has copied them to, with what their heads name and nothing else, and do what
 * the guides say of them.
 */
import { execFile, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { listen, startScripted } from './support/listening.ts';
import { faultOf, startTestMock } from './support/mock.ts';
import { modelsDir } from './support/models-dir.ts';
import { newUserEnv } from './support/new-user.ts';
import { freePort } from './support/redis.ts';
import { startService } from './support/service.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const copy = temporaryFolder();
cpSync(join(root, 'docs/clients'), copy, { recursive: true });
cpSync(join(root, 'proto'), join(copy, 'proto'), { recursive: true });
/** What `npm init -y` writes of it. */
const PACKAGE = JSON.stringify({ name: 'caller', version: '1.0.0', main: 'index.js', type: 'commonjs' });
writeFileSync(join(copy, 'package.json'), PACKAGE);
// What `npm install` puts there.
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));

const ANSWER = 'billing: invoices, charges, refunds 0.95641 umpire-mini@r11\n';
const WRONG = { UMPIRE_KEY: 'wrong' };
/** Python is not among what the tests need; `sh scripts/check-clients.sh` has all clients. */
const hasPython = spawnSync('python3', ['--version']).status === 0;

const run = (command: string, args: readonly string[], env: Record<string, string> = {}) =>
  promisify(execFile)(command, args, { cwd: copy, env: newUserEnv(env) });
const node = (...args: string[]) => run(process.execPath, args);

/** What a client said on standard error when it failed. */
async function failure(command: string, args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  return run(command, args, env).then(
    () => '',
    ({ stderr, stdout }: { stderr: string; stdout: string }) => stderr + stdout,
  );
}

test.serial.before('the heads say how a package that npm made becomes one of ES modules', async (t) => {
  const step = 'npm pkg set type=module';
  for (const file of ['connect.ts', 'decide.ts']) {
    const text = readFileSync(join(copy, file), 'utf8');
    t.true(text.slice(0, text.indexOf('*/')).includes(step), file);
  }
  const [npm = '', ...args] = step.split(' ');
  await run(npm, args);
});

test.serial('each of them makes a decision, and one with a bad key says why it is refused', async (t) => {
  const service = await startService({ UMPIRE_MODELS_DIR: modelsDir('umpire-mini') });
  t.teardown(service.stop);
  const address = `127.0.0.1:${service.port}`;
  await run('npx', ['@bufbuild/buf', 'generate']);
  // TypeScript of this kind needs no compiler, but has to pass one.
  const options = '--noEmit --strict --module nodenext --target esnext --allowJs --checkJs --skipLibCheck'.split(' ');
  const files = ['decide.ts', 'connect.ts', 'rest.mjs'];
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  await node(tsc, ...options, '--allowImportingTsExtensions', '--types', 'node', ...files);

  t.is((await node('decide.ts', address)).stdout, ANSWER);
  t.is((await node('connect.ts', service.url)).stdout, ANSWER);
  t.is((await node('rest.mjs', service.url)).stdout, ANSWER);
  if (hasPython) t.is((await run('python3', ['rest.py', service.url])).stdout, ANSWER);
  t.is(
    JSON.parse((await run('sh', ['decide.sh', service.url])).stdout).decision.output.choice,
    'billing: invoices, charges, refunds',
  );

  t.regex(
    await failure(process.execPath, ['decide.ts', address], WRONG),
    /^UNAUTHENTICATED AUTHENTICATION_REQUIRED {2}req_/,
  );
  t.regex(
    await failure(process.execPath, ['connect.ts', service.url], WRONG),
    /^Unauthenticated AUTHENTICATION_REQUIRED {2}req_/,
  );
  t.regex(await failure(process.execPath, ['rest.mjs', service.url], WRONG), /^401 authentication_required req_/);
  if (hasPython)
    t.regex(await failure('python3', ['rest.py', service.url], WRONG), /^401 authentication_required req_/);
  t.regex(
    await failure('sh', ['decide.sh', service.url], WRONG),
    /\nx-request-id: req_\S+\s+\{.*unauthenticated.*\}\n$/i,
  );
});

/**
 * A service that answers by a script, one entry a request; 'cut' ends the connection instead, 'cut body' in the
 * middle of an answer.
 */
async function scripted(
  t: ExecutionContext,
  answers: readonly ('cut' | 'cut body' | readonly [status: number, code: string, retryAfter?: number])[],
) {
  const times: number[] = [];
  const sockets = new Set<unknown>();
  const answer: RequestListener = (request, response) => {
    const next = answers[times.push(performance.now()) - 1] ?? 'cut';
    sockets.add(request.socket);
    if (next === 'cut') {
      request.socket.destroy();
      return;
    }
    if (next === 'cut body') {
      response.setHeader('content-length', 100);
      response.write('{', () => request.socket.destroy());
      return;
    }
    const [status, code, retryAfter] = next;
    const error = { message: 'in the words of a test', type: 'server_error', code, param: null };
    const output = { choice: 'billing', confidence: 1, probabilities: { billing: 1 } };
    if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
    request.resume();
    request.once('end', () => {
      response.statusCode = status;
      // A proxy's answer is no JSON.
      response.end(
        code === 'proxy' ? '<html>' : JSON.stringify(status === 200 ? { model: 'm@r1', output } : { error }),
      );
    });
  };
  return { url: await startScripted(t, answer), times, sockets };
}

const MODELS = [{ id: 'umpire-mini', revision: 'r1', status: 'ready' }] as const;

const CLIENTS = [['rest.mjs', process.execPath], ...(hasPython ? [['rest.py', 'python3']] : [])] as [string, string][];
for (const [file, command] of CLIENTS) {
  test.serial(`${file}: tries again what may work, when it is asked to, on one connection`, async (t) => {
    const service = await scripted(t, [
      [503, 'overloaded'],
      [429, 'rate_limit_exceeded', 1],
      [503, 'proxy'],
      'cut body',
      [200, ''],
    ]);
    t.regex((await run(command, [file, service.url])).stdout, /^billing 1(\.0)? m@r1\n$/);
    t.is(service.times.length, 5);
    // Not before the second that it was asked to wait; the others wait a fraction of one.
    const [, second = 0, third = 0, fourth = 0, last = 0] = service.times;
    t.true(third - second >= 995, `${third - second} ms`);
    t.true(last - fourth < 5_000);
    t.is(service.sockets.size, 2);
  });

  for (const [status, code] of [
    [429, 'quota_exceeded'],
    [503, 'deadline_exceeded'],
    [400, 'unknown_model'],
    [500, 'internal'],
  ] as const) {
    test.serial(`${file}: does not repeat ${status} ${code}`, async (t) => {
      const service = await scripted(t, [
        [status, code],
        [200, ''],
      ]);
      t.regex(await failure(command, [file, service.url]), new RegExp(`^${status} ${code} `));
      t.is(service.times.length, 1);
    });
  }

  test.serial(`${file}: a wait that is longer than the deadline is not begun, and attempts are bounded`, async (t) => {
    const late = await scripted(t, [
      [503, 'overloaded', 60],
      [200, ''],
    ]);
    t.regex(await failure(command, [file, late.url]), /^503 overloaded /);
    t.is(late.times.length, 1);
    const never = await scripted(
      t,
      Array.from({ length: 10 }, () => [503, 'overloaded'] as const),
    );
    t.regex(await failure(command, [file, never.url]), /^503 overloaded /);
    t.is(never.times.length, 5);
  });

  test.serial(`${file}: an answer that breaks off or is no JSON is an error, and no decision`, async (t) => {
    const spec = faultOf('cut=body');
    const mock = await startTestMock({ models: MODELS, faults: [{ spec, rate: 1 }] });
    t.teardown(mock.stop);
    t.regex(await failure(command, [file, mock.url]), /^(TypeError: (terminated|fetch failed): |IncompleteRead)/);
    const proxy = await scripted(t, [[200, 'proxy']]);
    t.regex(await failure(command, [file, proxy.url]), /^200 unknown .*: HTTP 200\n$/);
    t.is(proxy.times.length, 1);
  });

  test.serial(`${file}: a connection that is refused is named`, async (t) => {
    t.regex(
      await failure(command, [file, `http://127.0.0.1:${await freePort()}`]),
      /ECONNREFUSED|ConnectionRefusedError/,
    );
  });

  for (const part of ['headers', 'body'] as const) {
    test.serial(`${file}: the timeout ends ${part} that come in drops`, async (t) => {
      const server = createServer((socket) => {
        socket.write(part === 'headers' ? 'HTTP/1.1 200 OK\r\nX: ' : 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n');
        const drops = setInterval(() => socket.write('x'), 100);
        socket.resume().on('error', () => {});
        socket.once('close', () => clearInterval(drops));
      });
      t.teardown(() => server.close());
      const url = `http://127.0.0.1:${await listen(server)}`;
      const [option, source] =
        file === 'rest.mjs'
          ? [
              '--input-type=module-typescript',
              `import { decide } from './rest.mjs'; await decide('${url}', {}, { timeout: 1000 });`,
            ]
          : ['-B', `from rest import Umpire; Umpire('${url}').decide({}, timeout=1.0)`];
      const flag = file === 'rest.mjs' ? '-e' : '-c';
      // Without an end of its own the client would read for as long as the drops come.
      const begun = performance.now();
      const said = await promisify(execFile)(command, [option, flag, source], {
        cwd: copy,
        env: newUserEnv(),
        timeout: 15_000,
      }).then(
        () => 'an answer',
        ({ stderr, killed }: { stderr: string; killed: boolean }) => (killed ? 'it went on' : stderr),
      );
      t.regex(said, /Timeout/);
      t.true(performance.now() - begun >= 995);
    });
  }
}

test.serial('connect.ts: a wait that is longer than the deadline is not begun', async (t) => {
  const spec = faultOf('429; retry-after=9');
  const mock = await startTestMock({ models: MODELS, faults: [{ spec, rate: 1 }] });
  t.teardown(mock.stop);
  const begun = performance.now();
  t.regex(
    await failure(process.execPath, ['connect.ts', mock.url]),
    /^ResourceExhausted RATE_LIMIT_EXCEEDED {2}req_\S+: /,
  );
  // The first wait alone would be 9 s.
  t.true(performance.now() - begun < 9_000);
});

test('the README, the clients, OpenAPI and the guides make one request, word for word', (t) => {
  const { model, input, instruction, choices } = JSON.parse(readFileSync(join(copy, 'request.json'), 'utf8'));
  const clients = ['rest.mjs', 'rest.py', 'connect.ts', 'decide.ts', 'decide.py', 'decide.go', 'decide.sh'];
  const pages = ['README.md', 'gen/openapi.json', ...clients.map((name) => `docs/clients/${name}`)];
  for (const page of pages) {
    const text = readFileSync(join(root, page), 'utf8');
    for (const part of [model, input, instruction, ...choices])
      t.true(/["']/.test(text) && text.includes(part), `${page}: ${part}`);
    // Bare names are what the guide advises against.
    t.notRegex(text, /["']billing["'], *["']shipping["']/, page);
    if (page !== 'README.md') t.notRegex(text, /["']minilm-l6/, page);
  }
});

test.serial('a copy of rest.mjs needs no change of its package', async (t) => {
  const service = await scripted(t, [[200, '']]);
  const folder = join(copy, 'commonjs');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), PACKAGE);
  copyFileSync(join(root, 'docs/clients/rest.mjs'), join(folder, 'rest.mjs'));
  t.is((await node(join(folder, 'rest.mjs'), service.url)).stdout, 'billing 1 m@r1\n');
});

test('the Go client reads what buf.gen.go.yaml makes, which is of Umpire alone', (t) => {
  const template = readFileSync(join(root, 'docs/clients/buf.gen.go.yaml'), 'utf8');
  const prefix = /value: (\S+)/.exec(template)?.[1];
  t.regex(template, /directory: proto\n\s+paths: \[proto\/umpire\]/);
  t.true(readFileSync(join(root, 'docs/clients/decide.go'), 'utf8').includes(`umpirev1 "${prefix}/umpire/v1"`));
});
