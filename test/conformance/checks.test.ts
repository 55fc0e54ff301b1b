/**
 * Every check of the kit is proven: the mock passes it, and for each there is a service that breaks just that promise,
 * which the kit reports under that check and no other, or a refusal that it misses. A check without either fails here.
 * And the command as an operator runs it: behind TLS, through a proxy that meddles, under limits, and where nobody is.
 */
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import type { Answer } from '../../conformance/answer.ts';
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
import { type Change, CONNECT_REFUSALS, on, WRONG_REFUSALS, WRONG_STATUSES } from './breaking.ts';
import { brokenCatalogs } from './broken-catalogs.ts';
import { BROKEN_DECISIONS } from './broken-decisions.ts';
import { BROKEN_RPCS } from './broken-rpcs.ts';
import { type Recording, record, type SeenRequest } from './tape.ts';

const KEYS = { key: mintKey(), otherKey: mintKey() };
const ROWS = [...BROKEN_DECISIONS, ...brokenCatalogs(`Bearer ${KEYS.otherKey}`), ...BROKEN_RPCS];

/** Checks of what every answer carries, whatever it says, or of less than a refusal has; each has its row. */
const OF_ALL = /^(routes\.head|answers\.|grpc\.request-id|keys\.challenge|connect\.unknown-property)/;

/** Checks of a status alone. */
const OF_STATUS = /^grpc\.(deadline|health-unknown)$/;

/** What may become of an answer if it is a refusal. Of one without a body only that it is made is judged everywhere. */
function wrongRefusals({ headers, trailers, status, body }: Answer, { method }: SeenRequest): readonly Change[] {
  if (/^application\/grpc/.test(String(headers['content-type'])))
    return Number(trailers['grpc-status']) > 0 ? WRONG_STATUSES : [];
  // A check's catalogs are deleted behind it.
  if (status < 400 || method === 'DELETE' || body.length === 0) return [];
  if ('details' in JSON.parse(body.toString())) return CONNECT_REFUSALS;
  return method === 'GET' ? WRONG_REFUSALS.slice(0, 1) : WRONG_REFUSALS;
}

const test = anyTest as TestFn<Recording>;

test.before(async (t) => {
  const mock = await startTestMock({
    models: [
      { id: 'mock', revision: 'r1', status: 'ready' },
      { id: 'second', revision: 'r1', status: 'ready' },
      { id: 'gone', revision: 'r1', status: 'unavailable' },
      { id: 'off', revision: 'r1', status: 'disabled' },
    ],
    // Fewer choices than the contract allows, so that the model's own limit shows, too.
    limits: { inputTokens: 256, candidateTokens: 64, choices: 250 },
    keys: { mock: KEYS.key, other: KEYS.otherKey },
  });
  const caller = createCaller({ url: new URL(mock.url) });
  t.context = await record(CHECKS, caller, KEYS);
  caller.close();
  await mock.stop();
});

test('the mock keeps every promise, and none is left untried', (t) => {
  t.true(t.context.outcomes.length > 100);
  t.deepEqual(
    t.context.outcomes
      .filter(({ kind }) => kind !== 'passed')
      .map((outcome) => [outcome.check.id, 'reason' in outcome && outcome.reason]),
    [],
  );
});

test('the answers as they were recorded pass, too', async (t) => {
  t.deepEqual(await t.context.replay(() => undefined), new Map());
});

test('ids are unique and say where they belong', (t) => {
  const ids = CHECKS.map(({ id }) => id);
  t.deepEqual(ids, [...new Set(ids)]);
  for (const id of ids) t.regex(id, /^[a-z]+\.[a-z0-9-]+$/);
});

test('a refusal that is not made, or is of another kind, breaks its check', async (t) => {
  const { tapes, replayOne } = t.context;
  const proven = new Set<string>();
  const missed: string[] = [];
  for (const { check, tape } of tapes.filter(({ check }) => !OF_ALL.test(check.id))) {
    for (const [place, { seen, answer }] of tape.entries()) {
      for (const [number, change] of wrongRefusals(answer, seen).entries()) {
        if (number > 0 && OF_STATUS.test(check.id)) continue;
        const { kind } = await replayOne(check, place, change(answer, seen));
        if (kind !== 'failed')
          missed.push(`${check.id}: request ${place}, ${seen.method} ${seen.path}, change ${number}`);
        proven.add(check.id);
      }
    }
  }
  t.deepEqual(missed, []);
  const ids = CHECKS.map(({ id }) => id);
  t.deepEqual([...new Set([...proven, ...ROWS.map(([id]) => id)])].toSorted(), ids.toSorted(), 'every check is proven');
});

for (const [place, [check, when, changes, also = []]] of ROWS.entries()) {
  test.serial(`broken: ${check}, row ${place}`, async (t) => {
    for (const [number, change] of [changes].flat().entries()) {
      const failed = await t.context.replay(on(when, change));
      const told = `change ${number}: ${JSON.stringify([...failed])}`;
      t.deepEqual([...failed.keys()].toSorted(), [check, ...also].toSorted(), told);
    }
  });
}

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
  const found = names(out, 'failed').filter((id) => !id.startsWith('grpc.'));
  t.deepEqual(found, ['routes.http2', 'bodies.large', 'bodies.http2']);
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
