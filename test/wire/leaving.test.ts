/**
 * Callers that leave before their answer is there: the decision's signal is aborted, over each protocol and HTTP
 * version, and the log says so.
 */
import { request } from 'node:http';
import type { ClientHttp2Session } from 'node:http2';
import anyTest, { type TestFn } from 'ava';
import type { JobTerms } from '../../src/engine/engine.ts';
import { JobCanceled } from '../../src/engine/errors.ts';
import { VALID_BODY } from '../support/answers.ts';
import { openGrpc } from '../support/grpc.ts';
import { DECIDE, decide, frame, openSession, validMessage } from '../support/http.ts';
import { until } from '../support/redis.ts';
import { createScriptedEngine, descending, type ScriptedEngine } from '../support/scripted-engine.ts';
import { startService, type TestService } from '../support/service.ts';

const test = anyTest as TestFn<{ service: TestService; engine: ScriptedEngine }>;

test.beforeEach(async (t) => {
  const engine = createScriptedEngine();
  t.context = { engine, service: await startService({}, { engine }) };
});
test.afterEach.always(({ context: { service } }) => service.stop());

const JSON_TYPE = { 'content-type': 'application/json' };

function overHttp1(port: number, path: string): () => void {
  const sent = request({ port, host: '127.0.0.1', method: 'POST', path, headers: JSON_TYPE });
  sent.on('error', () => {});
  sent.end(JSON.stringify(VALID_BODY));
  return () => sent.destroy();
}

function overHttp2(session: ClientHttp2Session, path: string, type: string, body: string | Buffer): () => void {
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': type, te: 'trailers' });
  stream.on('error', () => {});
  stream.end(body);
  return () => stream.close(8);
}

const text = JSON.stringify(VALID_BODY);
const callers: Readonly<Record<string, (port: number, session: ClientHttp2Session) => () => void>> = {
  'REST over HTTP/1.1': (port) => overHttp1(port, '/v1/decisions'),
  'Connect over HTTP/1.1': (port) => overHttp1(port, DECIDE),
  'REST over HTTP/2': (_, session) => overHttp2(session, '/v1/decisions', 'application/json', text),
  'Connect over HTTP/2': (_, session) => overHttp2(session, DECIDE, 'application/json', text),
  gRPC: (_, session) => overHttp2(session, DECIDE, 'application/grpc', frame(validMessage)),
  'gRPC, by ending the session': (_, session) => {
    overHttp2(session, DECIDE, 'application/grpc', frame(validMessage));
    return () => session.destroy();
  },
  'grpc-js': (port) => {
    const grpc = openGrpc(port);
    const call = (
      grpc.decisions as never as { CreateDecision: (...args: unknown[]) => { cancel(): void } }
    ).CreateDecision(VALID_BODY, () => {});
    return () => {
      call.cancel();
      grpc.close();
    };
  },
};

for (const [what, call] of Object.entries(callers)) {
  test(what, async (t) => {
    const { service, engine } = t.context;
    const asked = Promise.withResolvers<JobTerms>();
    const left = Promise.withResolvers<void>();
    engine.script = (_, terms) =>
      new Promise((_resolve, reject) => {
        terms.signal.addEventListener('abort', () => {
          left.resolve();
          reject(new JobCanceled());
        });
        asked.resolve(terms);
      });
    const session = openSession(service.port);
    const leave = call(service.port, session);
    t.false((await asked.promise).signal.aborted);
    leave();
    await left.promise;
    session.destroy();
    // The service serves on, and its log has the exchange as one whose caller left.
    engine.script = descending;
    t.is((await decide(service.port, VALID_BODY)).status, 200);
    const lines = service.log.filter(({ msg, reason }) => msg === 'request' && reason === 'CANCELED');
    t.is(lines.length, 1);
    t.is(lines[0]?.level, 'info');
  });
}

test('a caller that leaves in the middle of its body asks for nothing', async (t) => {
  const { service, engine } = t.context;
  for (const path of ['/v1/decisions', DECIDE]) {
    const sent = request({
      port: service.port,
      host: '127.0.0.1',
      method: 'POST',
      path,
      headers: { ...JSON_TYPE, 'content-length': 1000 },
    });
    sent.on('error', () => {});
    await new Promise((resolve) => sent.write('{"model":', resolve));
    sent.destroy();
  }
  const session = openSession(service.port);
  for (const [path, type] of [
    ['/v1/decisions', 'application/json'],
    [DECIDE, 'application/json'],
    [DECIDE, 'application/grpc'],
  ] as const) {
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': type });
    stream.on('error', () => {});
    await new Promise((resolve) =>
      stream.write(type === 'application/grpc' ? frame(validMessage).subarray(0, 20) : '{"model":', resolve),
    );
    // Not close(), which would end the body properly first.
    stream.destroy();
  }
  await until(() => service.log.filter(({ msg }) => msg === 'request').length >= 5);
  session.destroy();
  t.is(engine.jobs.length, 0);
  const found = [...new Set(service.log.filter(({ msg }) => msg === 'request').map(({ reason }) => reason))];
  t.deepEqual(found, ['CANCELED']);
  t.deepEqual(
    service.log.filter(({ level }) => level === 'error'),
    [],
  );
});

test('a deadline of the caller’s reaches the decision, clamped; ours is 10 s', async (t) => {
  const { service, engine } = t.context;
  const left: number[] = [];
  engine.script = (job, terms) => {
    left.push(terms.deadline - performance.now());
    return descending(job, terms);
  };
  const grpc = openGrpc(service.port);
  const ask = (deadline?: number): Promise<unknown> =>
    new Promise((resolve) => {
      const options = deadline === undefined ? {} : { deadline: Date.now() + deadline };
      (grpc.decisions as never as { CreateDecision: (...args: unknown[]) => void }).CreateDecision(
        VALID_BODY,
        options,
        resolve,
      );
    });
  await ask();
  await ask(5000);
  await ask(600_000);
  await decide(service.port, VALID_BODY);
  grpc.close();
  const [none = 0, five = 0, long = 0, rest = 0] = left;
  t.true(none > 9000 && none <= 10_000, `${none}`);
  t.true(five > 3500 && five <= 5000, `${five}`);
  t.true(long > 28_000 && long <= 30_000, `${long}`);
  t.true(rest > 9000 && rest <= 10_000, `${rest}`);
});
