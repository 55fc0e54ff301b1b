/** When a server is unfit, and what is asked twice: told by the outcome of calls, whatever their messages say. */
import { status } from '@grpc/grpc-js';
import test from 'ava';
import type { CallOutcome } from '../../../../src/engine/engine.ts';
import { unhindered } from '../../../../src/engine/families/family.ts';
import { CallFailed } from '../../../../src/engine/families/remote/call-failed.ts';
import { failureOf as grpcFailureOf } from '../../../../src/engine/families/remote/grpc/client.ts';
import { failureOf as httpFailureOf } from '../../../../src/engine/families/remote/http/answers.ts';
import { RemoteServer } from '../../../../src/engine/families/remote/remote-server.ts';

/** A server that serves; it is told of each problem with it. */
async function serving(unready: (problem: string) => void = () => {}) {
  const connection = { readinessProblem: async () => undefined, modelProblems: async () => [], close() {} };
  const bounds = { requests: 8, bytes: 1024, timeoutMs: 1000 };
  const open = async () => connection;
  const server = new RemoteServer({ open, bounds, unready: ([problem = '']) => unready(problem) });
  await server.connect();
  server.watch();
  return server;
}

/** After which of eight failures in a row a server was unfit. */
async function openings(failure: CallFailed): Promise<readonly number[]> {
  const opened: number[] = [];
  let made = 0;
  const server = await serving(() => opened.push(made));
  for (made = 1; made <= 8; made += 1) await server.attempt(unhindered, () => Promise.reject(failure)).catch(() => {});
  server.close();
  return opened;
}

const grpc = (code: number, details: string): CallFailed => grpcFailureOf({ code, details }, 'ModelInfer');
const http = (status: number, text = ''): CallFailed =>
  httpFailureOf({ status, retryAfter: undefined, body: Buffer.from(text) }, '/rerank');

const [CODES, TOO_LARGE] = [status, '{"error":{"message":"input is too large to process"}}'];
for (const [opened, failures] of [
  // About the request: the server is well.
  [[], [CODES.INVALID_ARGUMENT, CODES.OUT_OF_RANGE, CODES.RESOURCE_EXHAUSTED].map((code) => grpc(code, 'refused'))],
  [[], [...[400, 409, 413, 422].map((code) => http(code)), http(500, TOO_LARGE)]],
  // About the server, even if the message speaks of something else.
  [
    [5],
    [CODES.INTERNAL, CODES.UNKNOWN, CODES.FAILED_PRECONDITION, CODES.PERMISSION_DENIED].map((code) =>
      grpc(code, 'ModelInfer ended after INVALID_ARGUMENT'),
    ),
  ],
  [[5], [403, 424, 429, 500, 502, 503, 504, 599].map((code) => http(code, 'bad request'))],
  // No second one is needed.
  [[1], [grpc(CODES.UNAUTHENTICATED, ''), ...[301, 302, 307, 401, 404].map((code) => http(code))]],
] as const) {
  for (const failure of failures) {
    const when = opened[0] === undefined ? 'about the request' : `the server is unfit after ${opened[0]}`;
    test(`${failure.message}, ${failure.details.slice(0, 40)}: ${when}`, async (t) => {
      t.deepEqual(await openings(failure), opened);
    });
  }
}

test('a decision between failures, or time that was too short, keeps a server fit', async (t) => {
  const server = await serving(t.fail);
  const failure = http(500);
  for (let i = 0; i < 20; i += 1) {
    await server.attempt(unhindered, () => Promise.reject(failure)).catch(() => {});
    if (i % 4 === 3) server.decided();
    const late = { ...unhindered, deadline: performance.now() };
    await t.throwsAsync(
      server.attempt(late, () => Promise.reject(failure)),
      { name: 'JobStopped' },
    );
  }
  server.close();
});

test('what fails more than now and then is not made again', async (t) => {
  const server = await serving();
  const call = async (outcome: CallOutcome): Promise<number> => {
    let made = 0;
    const once = async (): Promise<void> => {
      made += 1;
      if (outcome !== 'answered') throw new CallFailed(outcome, 'for a test');
    };
    await server.call({ rows: 1, bytes: 1 }, server.callOf(unhindered), once).catch(() => {});
    return made;
  };
  for (const outcome of ['refused', 'malformed', 'timed_out', 'canceled'] as const) t.is(await call(outcome), 1);
  let retried = 0;
  for (let i = 0; i < 10; i += 1) retried += (await call('unavailable')) - 1;
  t.true(retried > 0 && retried < 6, `${retried}`);
  t.is(await call('unavailable'), 1);
  for (let i = 0; i < 100; i += 1) await call('answered');
  t.is(await call('unavailable'), 2);
  t.like(server.takeCounts(), { retries: retried + 1, outcomes: { answered: 100 } });
  t.is(server.takeCounts(), undefined);
  server.close();
});
