/** What counts against a server is told by the gRPC status of a call, whatever its message says. */
import { status } from '@grpc/grpc-js';
import test from 'ava';
import { createBreaker } from '../../../../src/engine/families/remote/breaker.ts';
import { CallFailed } from '../../../../src/engine/families/remote/call-failed.ts';

/** How often a breaker opened after more failures in a row with this status than are tolerated. */
function openings(code: number, message: string): number {
  let opened = 0;
  const breaker = createBreaker(() => {
    opened += 1;
  });
  for (let i = 0; i < 8; i += 1) {
    breaker.failed(new CallFailed('refused', message, '', code), performance.now(), false);
  }
  return opened;
}

for (const code of [status.INVALID_ARGUMENT, status.OUT_OF_RANGE, status.RESOURCE_EXHAUSTED]) {
  test(`${status[code]} is about the request: the server is well`, (t) => {
    t.is(openings(code, 'refused'), 0);
  });
}

for (const code of [status.INTERNAL, status.UNKNOWN, status.FAILED_PRECONDITION]) {
  test(`${status[code]} is about the server, even if its message speaks of INVALID_ARGUMENT`, (t) => {
    t.is(openings(code, 'ModelInfer ended after INVALID_ARGUMENT'), 1);
  });
}
