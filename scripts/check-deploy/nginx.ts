/**
 * Calls a service through a real nginx with the configuration of deploy/nginx:
 * `node scripts/check-deploy/nginx.ts PORT`, with the port of a service that trusts 127.0.0.1 as its proxy. It calls
 * REST over HTTP/1.1 and HTTP/2, gRPC and Connect, all under one name with TLS; then the same without a replica.
 */
import { deepEqual, equal, match, notEqual } from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startProxy, type TestProxy } from '../../test/support/nginx.ts';
import { freePort, until } from '../../test/support/redis.ts';

const servicePort = process.argv[2] ?? '';
const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const body = JSON.stringify({
  model: 'minilm-l6',
  input: 'I was charged twice for my order',
  instruction: 'Which team should handle this?',
  choices: ['billing', 'shipping', 'technical support'],
});

/** Makes one request with curl; the status is 0 if there was no answer. */
function curl({ port, certificate }: TestProxy, path: string, ...options: readonly string[]) {
  const format = '\n%{http_version} %{http_code} %header{retry-after} %header{x-request-id} %header{grpc-status}';
  const all = ['--silent', '--cacert', certificate.certFile, '--write-out', format, ...options];
  try {
    const output = execFileSync('curl', [...all, `https://localhost:${port}${path}`], { encoding: 'utf8' });
    const place = output.lastIndexOf('\n');
    const [version, status, ...rest] = output.slice(place + 1).split(' ');
    return { version, status: Number(status), headers: rest.join(' '), text: output.slice(0, place) };
  } catch {
    return { version: '', status: 0, headers: '', text: '' };
  }
}

const JSON_REQUEST = ['--header', 'Content-Type: application/json', '--data', body];
const grpc = ({ port, certificate }: TestProxy): string =>
  execFileSync('node', [root('docs/clients/decide.ts'), `localhost:${port}`, certificate.certFile], {
    encoding: 'utf8',
    stdio: 'pipe',
  });

// Two of the three replicas are away, which callers must not notice.
const away = `127.0.0.1:${await freePort()}`;
const proxy = await startProxy([away, `127.0.0.1:${servicePort}`, away]);
try {
  for (const [option, version] of [
    ['--http1.1', '1.1'],
    ['--http2', '2'],
  ] as const) {
    for (let turn = 0; turn < 6; turn += 1) {
      const answer = curl(proxy, '/v1/decisions', option, ...JSON_REQUEST);
      deepEqual([answer.version, answer.status], [version, 200], answer.text);
      equal(JSON.parse(answer.text).output.choice, 'billing');
      match(answer.headers, /req_/);
    }
    const wrong = curl(proxy, '/v1/decisions', option, '--header', 'Content-Type: application/json', '--data', '{}');
    equal(wrong.status, 400);
    equal(JSON.parse(wrong.text).error.code, 'missing_field');
  }
  console.log('REST over HTTP/1.1 and HTTP/2: ok');
  match(grpc(proxy), /^billing 0\.532273/);
  console.log('gRPC: ok');
  const connect = curl(proxy, '/umpire.v1.DecisionService/CreateDecision', '--http1.1', ...JSON_REQUEST);
  equal(JSON.parse(connect.text).decision.output.choice, 'billing');
  console.log('Connect: ok');
  for (let turn = 0; turn < 5; turn += 1) {
    match(grpc(proxy), /^billing/);
    equal(curl(proxy, '/v1/decisions', ...JSON_REQUEST).status, 200);
  }
  console.log('REST and gRPC by turns: ok');
  const folder = mkdtempSync(join(tmpdir(), 'umpire-large-'));
  const file = join(folder, 'body');
  writeFileSync(file, JSON.stringify({ input: 'x'.repeat(1_500_000) }));
  const tooLarge = curl(proxy, '/v1/decisions', '--header', 'Content-Type: application/json', '--data', `@${file}`);
  rmSync(folder, { recursive: true });
  deepEqual([tooLarge.status, JSON.parse(tooLarge.text).error.code], [413, 'body_too_large']);
  console.log('the envelope of a body that is too large comes from the service: ok');
  const kit = [
    'src/cli.ts',
    'conformance',
    '--url',
    `https://localhost:${proxy.port}`,
    '--ca',
    proxy.certificate.certFile,
  ];
  execFileSync('node', kit, { cwd: root('.'), stdio: 'inherit' });
  console.log('every promise that can be tested without a key, through the proxy: ok');
} finally {
  await proxy.stop();
}

const bounded = await startProxy([`127.0.0.1:${servicePort}`], { cleartext: true, connections: 8192 });
try {
  const begun =
    'POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{';
  const held = Array.from({ length: 1024 }, () => {
    const socket = connect(bounded.port, '127.0.0.1');
    socket.write(begun);
    return socket;
  });
  await until(async () => {
    const answer = await fetch(`http://127.0.0.1:${bounded.port}/v1/models`);
    if (answer.status !== 429) return false;
    const { error } = (await answer.json()) as { error: { code: string } };
    deepEqual([error.code, answer.headers.get('retry-after')], ['concurrency_limit_exceeded', '1']);
    return true;
  });
  for (const socket of held) socket.destroy();
  await until(async () => (await fetch(`http://127.0.0.1:${bounded.port}/v1/models`)).ok);
  console.log('more than 1,024 requests of one address in progress: 429 in the envelope: ok');
  const session = connectHttp2(`http://127.0.0.1:${bounded.http2Port}`);
  const watch = async (): Promise<IncomingHttpHeaders> => {
    const call = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Watch',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    // One empty message: flags and length.
    call.end(Buffer.alloc(5));
    const [answer] = (await once(call, 'response')) as [IncomingHttpHeaders];
    return answer;
  };
  for (let watches = 0; watches < 32; watches += 1) equal((await watch())['grpc-status'], undefined);
  equal((await watch())['grpc-status'], '8');
  equal((await fetch(`http://127.0.0.1:${bounded.port}/v1/models`)).status, 200);
  session.destroy();
  console.log('more than 32 watches of one address: RESOURCE_EXHAUSTED: ok');
} finally {
  await bounded.stop();
}

const alone = await startProxy([away]);
try {
  const refused = curl(alone, '/v1/decisions', ...JSON_REQUEST);
  equal(refused.status, 503);
  deepEqual(JSON.parse(refused.text).error.type, 'server_error');
  match(refused.headers, /^1 /);
  const rpc = curl(
    alone,
    '/umpire.v1.DecisionService/CreateDecision',
    '--http2',
    '--header',
    'Content-Type: application/grpc',
    '--data',
    '',
  );
  match(rpc.headers, /14$/);
  let failed = '';
  try {
    grpc(alone);
  } catch (error) {
    failed = String((error as { stderr: unknown }).stderr);
  }
  notEqual(failed, '');
  match(failed, /no replica can be reached/);
  console.log('without a replica: 503 in the envelope, UNAVAILABLE over gRPC: ok');
} finally {
  await alone.stop();
}
