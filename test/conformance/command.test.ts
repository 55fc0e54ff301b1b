/**
 * `umpire conformance` as an operator runs it: behind TLS, through a proxy that meddles, under limits, and
 * where nobody is.
 */
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { createCaller } from '../../conformance/caller.ts';
import { CHECKS } from '../../conformance/checks.ts';
import { createKit } from '../../conformance/kit.ts';
import { runChecks } from '../../conformance/run.ts';
import { mintKey } from '../../src/domain/keys.ts';
import type { MockOptions } from '../../src/mock/start-mock.ts';
import { makeCertificate } from '../support/certificates.ts';
import { startScripted } from '../support/listening.ts';
import { faultOf, startTestMock } from '../support/mock.ts';
import { startProxy } from '../support/nginx.ts';
import { linesOf, runUmpire } from '../support/terminal.ts';

const conformance = (args: string, env: Record<string, string> = {}) =>
  runUmpire(['conformance', ...args.split(' ')], { env });

async function mock(t: ExecutionContext, options: Partial<MockOptions> = {}) {
  const started = await startTestMock({ seed: 3, ...options });
  t.teardown(() => started.stop());
  return started;
}

const names = (output: string, kind: string): readonly string[] =>
  [...output.matchAll(new RegExp(`^${kind}: ([a-z.0-9-]+)`, 'gm'))].map(([, id = '']) => id);

test('over TLS, with its certificate, or with any on request', async (t) => {
  const { certFile, keyFile } = makeCertificate('localhost');
  const { url } = await mock(t, { env: { PORT: '0', TLS_CERT: certFile, TLS_KEY: keyFile } });
  const local = url.replace('127.0.0.1', 'localhost');
  const few = ['decisions', 'requests', 'bodies', 'keys'].map((part) => `--skip ${part}.`).join(' ');
  t.is((await conformance(`--url ${local} --ca ${certFile} ${few}`)).status, 0);
  t.is((await conformance(`--url ${url} --insecure ${few}`)).status, 0);
  const { status, err } = await conformance(`--url ${local}`);
  t.is(status, 1);
  t.regex(err, /self-signed certificate/);
});

test('without a key catalogs are skipped and not passed; parts can be left out; the report can be JSON', async (t) => {
  const { url } = await mock(t);
  const { status, out } = await conformance(`--url ${url} --skip grpc. --skip connect. --json`);
  t.is(status, 0);
  const report = JSON.parse(out) as { checks: { id: string; outcome: string; reason?: string }[] };
  const outcomes = Object.groupBy(report.checks, ({ outcome }) => outcome);
  t.is(report.checks.length, CHECKS.length);
  t.is(outcomes.failed, undefined);
  const passed = outcomes.passed?.map(({ id }) => id) ?? [];
  t.true(passed.includes('decisions.order') && passed.includes('keys.needed'));
  t.false(passed.some((id) => /^(catalogs|grpc|connect)\./.test(id)));
  const reasons = new Set(outcomes.skipped?.map(({ reason }) => reason));
  t.true(reasons.has('needs a key') && reasons.has('left out on request'));
});

/** Passes HTTP/1.1 on, but for bodies of more than 1 MiB, and speaks no HTTP/2: a proxy with its defaults. */
function startMeddler(t: ExecutionContext, target: string): Promise<string> {
  const refuse = (response: ServerResponse): void => {
    response.writeHead(413, { server: 'some-proxy', 'content-type': 'text/html', connection: 'close' });
    response.end('<html>413 Request Entity Too Large</html>');
  };
  const pass = (incoming: IncomingMessage, response: ServerResponse): void => {
    const { method, headers, url = '' } = incoming;
    if (Number(headers['content-length'] ?? 0) > 1024 * 1024) {
      incoming.resume().on('end', () => refuse(response));
      return;
    }
    const outgoing = request(new URL(url, target), { method, headers, setHost: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    incoming.pipe(outgoing);
  };
  return startScripted(t, pass, { maxHeaderSize: 64 * 1024 });
}

test('through a proxy that answers for itself: what fails, and why that is', async (t) => {
  const { url } = await mock(t);
  const proxy = await startMeddler(t, url);
  const { status, out, err } = await conformance(`--url ${proxy}`);
  t.is(status, 1);
  t.deepEqual(
    names(out, 'failed').filter((id) => !id.startsWith('grpc.')),
    ['routes.http2', 'bodies.large', 'bodies.http2'],
  );
  t.regex(out, /text\/html by 'some-proxy' and has no X-Request-ID: a proxy in front answers this itself/);
  t.regex(
    out,
    /no HTTP\/2 at http:.*perhaps a proxy, does not speak HTTP\/2 in cleartext; --grpc names another address/,
  );
  t.regex(err, /\d+ passed, \d+ failed/);
  // gRPC may have an address of its own.
  const direct = await conformance(`--url ${proxy} --grpc ${url} --skip decisions. --skip requests.`);
  t.deepEqual(names(direct.out, 'failed'), ['bodies.large']);
});

test('through a real nginx with the configuration that is shipped, nothing fails', async (t) => {
  const [key, otherKey] = [mintKey(), mintKey()];
  const { url } = await mock(t, { keys: { mock: key, other: otherKey } });
  const proxy = await startProxy([new URL(url).host]);
  t.teardown(() => proxy.stop());
  const env = { UMPIRE_KEY: key, UMPIRE_OTHER_KEY: otherKey };
  const args = `--url https://localhost:${proxy.port} --ca ${proxy.certificate.certFile}`;
  const { status, out } = await conformance(args, env);
  t.is(status, 0, out);
  t.regex(out, /\n\d{3} passed, 0 failed, 6 skipped\n$/);
});

test('a limit that passes is waited for, one that lasts is a reason to skip', async (t) => {
  const spec = faultOf('429; retry-after=1');
  const { url } = await mock(t, { faults: [{ spec, rate: 0.01 }] });
  const waited = await conformance(`--url ${url}`);
  t.is(waited.status, 0, `${waited.out}\n${waited.err}`);
  const { url: quota } = await mock(t, { env: { PORT: '0', UMPIRE_QUOTA_ANONYMOUS: '5' } });
  const { status, out } = await conformance(`--url ${quota}`);
  t.is(status, 0);
  t.regex(out, /skipped: decisions\.order: a limit of this deployment is in the way: .*quota_exceeded/);
});

test('a deployment that falls silent is not waited for a hundred times', async (t) => {
  const url = new URL(await startScripted(t, () => {}));
  const caller = createCaller({ url, timeout: 50 });
  const outcomes = await runChecks(CHECKS, createKit({ caller, key: mintKey() }));
  caller.close();
  const failed = outcomes.filter(({ kind }) => kind === 'failed');
  t.deepEqual(
    failed.map((outcome) => 'reason' in outcome && outcome.reason),
    ['live', 'ready', 'live'].map((path) => `GET /health/${path}: no answer within 0.05 s`),
  );
  t.is(outcomes.filter(({ kind }) => kind === 'skipped').length, CHECKS.length - 3);
});

test('where nobody listens one line says so, and bad arguments are said', async (t) => {
  const nowhere = await conformance('--url http://127.0.0.1:1');
  t.is(nowhere.status, 1);
  t.is(nowhere.out, '');
  t.regex(nowhere.err, /GET \/health\/live: .*ECONNREFUSED/);
  const { url } = await mock(t);
  const typo = await conformance(`--url ${url} --model mook`);
  t.deepEqual([typo.status, typo.out], [1, '']);
  t.regex(typo.err, /mook is not ready/);
  t.is((await conformance('--url ftp://a')).status, 2);
  t.is((await conformance('--json')).status, 2);
  t.is((await conformance('--url http://a b')).status, 2);
  const { status, out } = await conformance('--list');
  t.is(status, 0);
  t.is(linesOf(out).length, CHECKS.length);
});
