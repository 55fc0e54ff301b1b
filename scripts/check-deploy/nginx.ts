/**
 * Calls a service through a real nginx with the configuration of deploy/nginx: `node scripts/check-deploy/nginx.ts PORT`, the port of a service
 * that trusts 127.0.0.1 as its proxy. REST over HTTP/1.1 and HTTP/2, gRPC and Connect, all on one name with TLS; then without a replica.
 */
import { deepEqual, equal, match, notEqual } from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeCertificate } from '../../test/support/certificates.ts';

const servicePort = process.argv[2] ?? '';
const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const body = JSON.stringify({
  model: 'minilm-l6',
  input: 'I was charged twice for my order',
  instruction: 'Which team should handle this?',
  choices: ['billing', 'shipping', 'technical support'],
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

interface Proxy {
  readonly port: number;
  stop(): Promise<void>;
}

const certificate = makeCertificate('umpire.example');

/** Starts nginx with the shipped configuration; only names, ports and files are replaced. */
async function startProxy(replicas: readonly number[]): Promise<Proxy> {
  const folder = mkdtempSync(join(tmpdir(), 'umpire-nginx-'));
  const port = await freePort();
  const servers = replicas.map((replica) => `server 127.0.0.1:${replica} max_fails=1 fail_timeout=2s;`).join('\n  ');
  const site = readFileSync(root('deploy/nginx/umpire.conf'), 'utf8')
    .replaceAll(/server umpire-1[\s\S]*?umpire-3[^;]*;/g, servers)
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replace('/etc/nginx/tls/tls.crt', certificate.certFile)
    .replace('/etc/nginx/tls/tls.key', certificate.keyFile);
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr;
     events {} http { access_log off; ${paths.join(' ')}\n${site}\n}`,
  );
  execFileSync('nginx', ['-t', '-q', '-e', 'stderr', '-c', file], { stdio: 'inherit' });
  const child = spawn('nginx', ['-e', 'stderr', '-c', file], { stdio: 'ignore' });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  for (let attempt = 0; attempt < 100; attempt += 1) {
    if (curl(port, '/health/live').status !== 0) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    port,
    async stop() {
      child.kill('SIGTERM');
      await exited;
      rmSync(folder, { recursive: true });
    },
  };
}

/** One request by curl; status 0 if there was no answer. */
function curl(port: number, path: string, ...options: readonly string[]) {
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

const json = ['--header', 'Content-Type: application/json', '--data', body];
const grpc = (port: number): string =>
  execFileSync('node', [root('docs/clients/decide.ts'), `localhost:${port}`, certificate.certFile], {
    encoding: 'utf8',
    stdio: 'pipe',
  });

// The first of the replicas is away: nothing of it shows.
const away = await freePort();
const proxy = await startProxy([away, Number(servicePort), away]);
try {
  for (const [option, version] of [
    ['--http1.1', '1.1'],
    ['--http2', '2'],
  ] as const) {
    for (let turn = 0; turn < 6; turn += 1) {
      const answer = curl(proxy.port, '/v1/decisions', option, ...json);
      deepEqual([answer.version, answer.status], [version, 200]);
      equal(JSON.parse(answer.text).output.choice, 'billing');
      match(answer.headers, /req_/);
    }
    const wrong = curl(
      proxy.port,
      '/v1/decisions',
      option,
      '--header',
      'Content-Type: application/json',
      '--data',
      '{}',
    );
    equal(wrong.status, 400);
    equal(JSON.parse(wrong.text).error.code, 'missing_field');
  }
  console.log('REST over HTTP/1.1 and HTTP/2: ok');
  match(grpc(proxy.port), /^billing 0\.532273/);
  console.log('gRPC: ok');
  const connect = curl(proxy.port, '/umpire.v1.DecisionService/CreateDecision', '--http1.1', ...json);
  equal(JSON.parse(connect.text).decision.output.choice, 'billing');
  console.log('Connect: ok');
  for (let turn = 0; turn < 5; turn += 1) {
    match(grpc(proxy.port), /^billing/);
    equal(curl(proxy.port, '/v1/decisions', ...json).status, 200);
  }
  console.log('REST and gRPC by turns: ok');
  const folder = mkdtempSync(join(tmpdir(), 'umpire-large-'));
  const file = join(folder, 'body');
  writeFileSync(file, JSON.stringify({ input: 'x'.repeat(1_500_000) }));
  const tooLarge = curl(
    proxy.port,
    '/v1/decisions',
    '--header',
    'Content-Type: application/json',
    '--data',
    `@${file}`,
  );
  rmSync(folder, { recursive: true });
  deepEqual([tooLarge.status, JSON.parse(tooLarge.text).error.code], [413, 'body_too_large']);
  console.log('the envelope of a body that is too large comes from the service: ok');
} finally {
  await proxy.stop();
}

const alone = await startProxy([away]);
try {
  const refused = curl(alone.port, '/v1/decisions', ...json);
  equal(refused.status, 503);
  deepEqual(JSON.parse(refused.text).error.type, 'server_error');
  match(refused.headers, /^1 /);
  const rpc = curl(
    alone.port,
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
    grpc(alone.port);
  } catch (error) {
    failed = String((error as { stderr: unknown }).stderr);
  }
  notEqual(failed, '');
  match(failed, /no replica can be reached/);
  console.log('without a replica: 503 in the envelope, UNAVAILABLE over gRPC: ok');
} finally {
  await alone.stop();
}
