/** What counts against a server is told by the status of a call, whatever its message says. */
import { status } from '@grpc/grpc-js';
import test from 'ava';
import { failureOf as grpcFailureOf } from '../../../../src/engine/families/open-inference/client.ts';
import type { CallFailed } from '../../../../src/engine/families/remote/call-failed.ts';
import { failureOf as httpFailureOf } from '../../../../src/engine/families/remote/http/answers.ts';
import { createBreaker } from '../../../../src/engine/families/remote/remote-server.ts';

/** After which of eight failures in a row a breaker opened. */
function openings(failure: CallFailed): readonly number[] {
  const opened: number[] = [];
  let made = 0;
  const breaker = createBreaker(() => opened.push(made));
  for (made = 1; made <= 8; made += 1) breaker.failed(failure, performance.now(), false);
  return opened;
}

const grpc = (code: number, details: string): CallFailed => grpcFailureOf({ code, details }, 'ModelInfer');
const http = (status: number, text = ''): CallFailed =>
  httpFailureOf({ status, retryAfter: undefined, body: Buffer.from(text) }, '/rerank');

for (const code of [status.INVALID_ARGUMENT, status.OUT_OF_RANGE, status.RESOURCE_EXHAUSTED]) {
  test(`${status[code]} is about the request: the server is well`, (t) => {
    t.deepEqual(openings(grpc(code, 'refused')), []);
  });
}

for (const code of [status.INTERNAL, status.UNKNOWN, status.FAILED_PRECONDITION, status.PERMISSION_DENIED]) {
  test(`${status[code]} is about the server, even if its message speaks of INVALID_ARGUMENT`, (t) => {
    t.deepEqual(openings(grpc(code, 'ModelInfer ended after INVALID_ARGUMENT')), [5]);
  });
}

test('UNAUTHENTICATED needs no second one', (t) => t.deepEqual(openings(grpc(status.UNAUTHENTICATED, '')), [1]));

for (const code of [400, 409, 413, 422]) {
  test(`${code} is about the request`, (t) => t.deepEqual(openings(http(code)), []));
}
test('a 500 that is about a text is about the request', (t) => {
  t.deepEqual(openings(http(500, '{"error":{"message":"input is too large to process"}}')), []);
});
for (const code of [403, 424, 429, 500, 502, 503, 504, 599]) {
  test(`${code} is about the server`, (t) => t.deepEqual(openings(http(code, 'bad request')), [5]));
}
for (const code of [301, 302, 307, 401, 404]) {
  test(`${code} needs no second one`, (t) => t.deepEqual(openings(http(code)), [1]));
}
