/** The guides' clients run where a caller has copied them to, with what their heads name and nothing else, and do what the guides say of them. */
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { newUserEnv } from './support/new-user.ts';
import { startService } from './support/service.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const copy = mkdtempSync(join(tmpdir(), 'umpire-clients-'));
test.after.always(() => rmSync(copy, { recursive: true, force: true }));
cpSync(join(root, 'docs/clients'), copy, { recursive: true });
cpSync(join(root, 'proto'), join(copy, 'proto'), { recursive: true });
writeFileSync(join(copy, 'package.json'), '{ "type": "module" }');
// What `npm install` puts there.
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));

const ANSWER = 'billing 0.532273 minilm-l6@r1\n';
const WRONG = { API_KEY: 'wrong' };
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

test.serial('each of them makes a decision, and one with a bad key says why it is refused', async (t) => {
  const service = await startService();
  t.teardown(service.stop);
  const address = `127.0.0.1:${service.port}`;
  await run('npx', ['buf', 'generate']);
  // TypeScript of this kind needs no compiler, but has to pass one.
  const options = [
    '--noEmit',
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'esnext',
    '--allowImportingTsExtensions',
  ];
  const files = ['decide.ts', 'connect.ts', 'rest.ts'];
  await node(join(root, 'node_modules/typescript/bin/tsc'), ...options, '--types', 'node', '--skipLibCheck', ...files);

  t.is((await node('decide.ts', address)).stdout, ANSWER);
  t.is((await node('connect.ts', service.url)).stdout, ANSWER);
  t.is((await node('rest.ts', service.url)).stdout, ANSWER);
  if (hasPython) t.is((await run('python3', ['rest.py', service.url])).stdout, ANSWER);
  t.is(JSON.parse((await run('sh', ['decide.sh', service.url])).stdout).decision.output.choice, 'billing');

  t.regex(await failure(process.execPath, ['decide.ts', address], WRONG), /^UNAUTHENTICATED AUTHENTICATION_REQUIRED /);
  t.regex(
    await failure(process.execPath, ['connect.ts', service.url], WRONG),
    /^Unauthenticated AUTHENTICATION_REQUIRED /,
  );
  t.regex(await failure(process.execPath, ['rest.ts', service.url], WRONG), /^401 authentication_required req_/);
  if (hasPython)
    t.regex(await failure('python3', ['rest.py', service.url], WRONG), /^401 authentication_required req_/);
  t.regex(await failure('sh', ['decide.sh', service.url], WRONG), /unauthenticated/);
});

/** A service that answers by a script, one entry a request; 'cut' ends the connection instead. */
async function scripted(answers: readonly ('cut' | readonly [status: number, code: string, retryAfter?: number])[]) {
  const times: number[] = [];
  const sockets = new Set<unknown>();
  const answer: RequestListener = (request, response) => {
    const next = answers[times.push(performance.now()) - 1] ?? 'cut';
    sockets.add(request.socket);
    if (next === 'cut') {
      request.socket.destroy();
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
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    times,
    sockets,
    close: () => server.closeAllConnections() ?? server.close(),
  };
}

const clients = [['rest.ts', process.execPath], ...(hasPython ? [['rest.py', 'python3']] : [])] as [string, string][];
for (const [file, command] of clients) {
  test.serial(`${file}: tries again what may work, when it is asked to, on one connection`, async (t) => {
    const service = await scripted([
      [503, 'overloaded'],
      [429, 'rate_limit_exceeded', 1],
      [503, 'proxy'],
      'cut',
      [200, ''],
    ]);
    t.teardown(service.close);
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
      const service = await scripted([
        [status, code],
        [200, ''],
      ]);
      t.teardown(service.close);
      t.regex(await failure(command, [file, service.url]), new RegExp(`^${status} ${code} `));
      t.is(service.times.length, 1);
    });
  }

  test.serial(`${file}: a wait that is longer than the deadline is not begun, and attempts are bounded`, async (t) => {
    const late = await scripted([
      [503, 'overloaded', 60],
      [200, ''],
    ]);
    t.teardown(late.close);
    t.regex(await failure(command, [file, late.url]), /^503 overloaded /);
    t.is(late.times.length, 1);
    const never = await scripted(Array.from({ length: 10 }, () => [503, 'overloaded'] as const));
    t.teardown(never.close);
    t.regex(await failure(command, [file, never.url]), /^503 overloaded /);
    t.is(never.times.length, 5);
  });
}
