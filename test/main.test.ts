/** The server as an operator meets it: a process with an environment, signals, an exit status and a log. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { connect as connectSecure } from 'node:tls';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { mintKey } from '../src/domain/keys.ts';
import { VALID_BODY } from './support/answers.ts';
import { makeCertificate } from './support/certificates.ts';
import { CHILD_ENV } from './support/child-env.ts';
import { callGrpc, openGrpc } from './support/grpc.ts';
import { DECIDE, decide, openSession, send, sendH2 } from './support/http.ts';
import { lightModel } from './support/light-model.ts';
import { listen } from './support/listening.ts';
import { cachedDataDir, modelsDir } from './support/models-dir.ts';
import { outputOf } from './support/output.ts';
import { until } from './support/redis.ts';
import { startServer } from './support/server-process.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const ENTRY = fileURLToPath(new URL('../src/main.ts', import.meta.url));

/** Runs the entry until it exits by itself. */
async function runToEnd(
  env: Record<string, string>,
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [ENTRY], { env: { ...CHILD_ENV, ...env } });
  const [stdout, stderr] = [outputOf(child.stdout), outputOf(child.stderr)];
  await once(child, 'close');
  return { status: child.exitCode, stdout: stdout(), stderr: stderr() };
}

type Line = Record<string, unknown>;
const linesOf = (output: string): readonly Line[] =>
  output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line);

test('settings that cannot be used: all of them are named, and the status is 1', async (t) => {
  const { status, stdout, stderr } = await runToEnd({
    PORT: 'x',
    UMPIRE_ENGINES: '0',
    LOG_LEVEL: 'loud',
    UMPIRE_TYPO: '1',
  });
  t.is(status, 1);
  t.is(stdout, '');
  for (const name of ['PORT', 'UMPIRE_ENGINES', 'LOG_LEVEL', 'UMPIRE_TYPO'])
    t.regex(stderr, new RegExp(`^  ${name}: `, 'm'));
});

for (const setting of ['PORT', 'UMPIRE_METRICS_PORT'])
  test(`a ${setting} that is taken: said in the log before anything is loaded, and the status is 1`, async (t) => {
    const holder = createServer();
    const port = await listen(holder);
    const folder = join(temporaryFolder(), 'data');
    const { status, stdout } = await runToEnd({
      PORT: '0',
      [setting]: String(port),
      HOST: '127.0.0.1',
      UMPIRE_DATA_DIR: folder,
      UMPIRE_LISTEN_WHEN: 'ready',
    });
    t.is(status, 1);
    const [line, ...others] = linesOf(stdout);
    t.is(line?.msg, `port ${port} is taken: PORT and UMPIRE_METRICS_PORT name others`);
    t.false('err' in (line ?? {}));
    t.deepEqual(others, []);
    t.false(existsSync(folder));
    holder.close();
  });

test('a folder for the store that cannot be one: said in a line, without a stack', async (t) => {
  const { status, stdout } = await runToEnd({ PORT: '0', UMPIRE_DATA_DIR: import.meta.filename, UMPIRE_ENGINES: '1' });
  t.is(status, 1);
  const [line] = linesOf(stdout).filter(({ level }) => level === 'fatal');
  t.regex(String(line?.msg), /^cannot start: cannot open .*umpire\.db: .*; see UMPIRE_DATA_DIR$/);
  t.false('err' in (line ?? {}));
});

test('a fault that nothing caught: what was accepted is answered, the metric has the reason, then the status is 70', async (t) => {
  const server = await startServer(
    {
      UMPIRE_DATA_DIR: cachedDataDir(),
      UMPIRE_MODELS_DIR: modelsDir('minilm-l6'),
      UMPIRE_DRAIN_DELAY: '1',
      UMPIRE_METRICS_PORT: '0',
    },
    [],
    ['--import', new URL('./support/fault-on-signal.ts', import.meta.url).href],
  );
  const metricsPort = Number(/"metricsPort":(\d+)/.exec(server.output())?.[1]);
  const choices = Array.from({ length: 100 }, (_, index) => `a department with the number ${index}`);
  const asked = Array.from({ length: 4 }, () => decide(server.port, { ...VALID_BODY, choices }));
  await new Promise((resolve) => setTimeout(resolve, 50));
  process.kill(server.pid, 'SIGUSR2');
  // A fault that comes again while it drains changes nothing.
  await new Promise((resolve) => setTimeout(resolve, 100));
  process.kill(server.pid, 'SIGUSR2');
  t.is((await send(metricsPort, { path: '/health/ready' })).status, 503);
  t.is((await send(metricsPort, { path: '/health/live' })).status, 200);
  t.regex((await send(metricsPort, { path: '/metrics' })).text, /^umpire_faults_total\{reason="ERR_TEST"\} 2$/m);
  t.is((await decide(server.port, VALID_BODY)).status, 200);
  for (const { status } of await Promise.all(asked)) t.is(status, 200);
  t.is(await server.ended(), 70);
  const lines = linesOf(server.output());
  t.is(lines.filter(({ level, reason }) => level === 'fatal' && reason === 'ERR_TEST').length, 2);
  t.true(lines.some(({ msg }) => msg === 'stopped'));
});

test('SIGTERM: what was asked is answered, then the status is 0', async (t) => {
  const server = await startServer({
    UMPIRE_DATA_DIR: cachedDataDir(),
    UMPIRE_MODELS_DIR: modelsDir('minilm-l6'),
    UMPIRE_DRAIN_DELAY: '0.3',
  });
  const choices = Array.from({ length: 100 }, (_, index) => `a department with the number ${index}`);
  // Enough work to be under way when the signal comes.
  const asked = Array.from({ length: 6 }, (_, index) =>
    decide(server.port, { ...VALID_BODY, input: `case ${index}`, choices }),
  );
  await Promise.race(asked);
  const [status, answers] = await Promise.all([server.stop(), Promise.all(asked)]);
  t.is(status, 0);
  t.deepEqual([...new Set(answers.map((answer) => answer.status))], [200]);
  const messages = linesOf(server.output()).map(({ msg }) => msg);
  for (const message of ['listening', 'asked to stop', 'draining', 'stopped'])
    t.true(messages.includes(message), message);
});

test('one line a request, with what happened and never with a key, an input or a choice', async (t) => {
  const server = await startServer({
    UMPIRE_DATA_DIR: temporaryFolder(),
    UMPIRE_MODELS_DIR: lightModel(),
    LOG_LEVEL: 'trace',
  });
  const { port } = server;
  const secret = {
    input: 'geheimer-text',
    instruction: 'geheime-frage',
    choices: ['geheime-wahl-1', 'geheime-wahl-2'],
  };
  const body = { model: 'minilm-l6', ...secret };
  const key = mintKey();
  const bearer = { authorization: `Bearer ${key}` };
  const session = openSession(port);
  const grpc = openGrpc(port);
  const decided = await decide(port, body);
  t.is(decided.status, 200);
  await decide(port, body, { 'x-request-id': 'theirs\n{"level":"fatal"}'.replace('\n', ' ') });
  await decide(port, body, bearer);
  await decide(port, { ...body, 'geheim-feld': 1, choices: secret.choices.slice(1) });
  await send(port, { body: `{"model":"geheim" ${JSON.stringify(secret)}` });
  await send(port, { path: DECIDE, body: JSON.stringify(body) });
  await send(port, { path: DECIDE, body: JSON.stringify({ ...body, geheim: 1 }) });
  await send(port, { path: `/v1/models/geheim?key=${key}` });
  await send(port, { path: `/v1/geheim/${key}` });
  await sendH2(session, { body: JSON.stringify(body), headers: bearer });
  await callGrpc(grpc.decisions, 'CreateDecision', body);
  await callGrpc(grpc.decisions, 'CreateDecision', { ...body, choices: ['geheime-wahl-1'] }, { metadata: bearer });
  await callGrpc(grpc.decisions, 'CreateDecision', { ...body, input: 'geheimer-text '.repeat(3000) });
  session.destroy();
  grpc.close();
  t.is(await server.stop(), 0);

  const output = server.output();
  t.notRegex(output, /geheim/i);
  t.false(output.includes(key) || output.includes(key.slice(0, 20)));
  const requests = linesOf(output).filter(
    ({ msg, route }) => msg === 'request' && !String(route).startsWith('/health'),
  );
  t.is(requests.length, 13);
  const first = requests.find(({ requestId }) => requestId === decided.headers['x-request-id']);
  t.like(first, {
    level: 'info',
    protocol: 'rest',
    method: 'POST',
    route: '/v1/decisions',
    status: 200,
    caller: 'anonymous',
    model: 'minilm-l6@r1',
    choices: 2,
  });
  t.deepEqual(Object.keys(first?.timings as object).toSorted(), ['infer', 'queue', 'tokenize']);
  t.true(Number(first?.inputTokens) > 0 && Number(first?.durationMs) > 0);
  const reasons = requests.map(({ reason }) => String(reason ?? '-'));
  const refused = `${'AUTHENTICATION_REQUIRED '.repeat(3)}INPUT_TOKENS_EXCEEDED INVALID_JSON MODEL_NOT_FOUND`;
  t.is(reasons.toSorted().join(' '), `- - - - ${refused} ROUTE_NOT_FOUND UNKNOWN_FIELD UNKNOWN_FIELD`);
});

test('SIGHUP reads the certificate again; one that is broken changes nothing', async (t) => {
  const at = temporaryFolder();
  const [certFile, keyFile] = [join(at, 'cert.pem'), join(at, 'key.pem')];
  const place = (name: string): void => {
    const made = makeCertificate(name);
    copyFileSync(made.certFile, certFile);
    copyFileSync(made.keyFile, keyFile);
  };
  place('first');
  const child = spawn(process.execPath, [ENTRY], {
    env: {
      ...CHILD_ENV,
      PORT: '0',
      HOST: '127.0.0.1',
      UMPIRE_ENGINES: '1',
      UMPIRE_MODELS_DIR: lightModel(),
      UMPIRE_DATA_DIR: at,
      UMPIRE_DRAIN_DELAY: '0',
      TLS_CERT: certFile,
      TLS_KEY: keyFile,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output = outputOf(child.stdout);
  const said = (pattern: RegExp) => until(() => pattern.test(output()), 30_000);
  await said(/"port":\d+/);
  const port = Number(/"port":(\d+)/.exec(output())?.[1]);
  const nameOf = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connectSecure({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
        resolve(String(socket.getPeerCertificate().subject.CN));
        socket.destroy();
      });
      socket.on('error', reject);
    });
  t.is(await nameOf(), 'first');
  place('second');
  child.kill('SIGHUP');
  await said(/"msg":"reloaded"/);
  t.is(await nameOf(), 'second');
  copyFileSync(makeCertificate('third').keyFile, keyFile);
  child.kill('SIGHUP');
  await said(/reload failed/);
  t.is(await nameOf(), 'second');
  child.kill('SIGINT');
  await once(child, 'exit');
  t.is(child.exitCode, 0);
});
