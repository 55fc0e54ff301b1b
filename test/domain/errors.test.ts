/** The table of errors, and how each protocol says them. */
import test from 'ava';
import { DomainError, ERROR_TABLE, type ErrorReason as Reason } from '../../src/domain/errors.ts';
import { envelopeBody, errorHeaders } from '../../src/wire/http/response.ts';
import { toConnectError } from '../../src/wire/rpc/fault.ts';

const rows = Object.entries(ERROR_TABLE) as [Reason, (typeof ERROR_TABLE)[Reason]][];

test('gRPC’s codes never blame the server for what HTTP calls the caller’s fault', (t) => {
  const servers = new Set(['INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'DEADLINE_EXCEEDED']);
  for (const [reason, { http, status }] of rows) if (http < 500) t.false(servers.has(status), reason);
});

test('the code is the reason in lower case, the details default to none', (t) => {
  const error = new DomainError('RATE_LIMIT_EXCEEDED', 'slow down');
  t.is(error.code, 'rate_limit_exceeded');
  t.is(error.param, null);
  t.is(error.retryAfter, undefined);
  t.is(error.cause, undefined);
  const cause = new Error('underneath');
  t.like(new DomainError('MODEL_UNAVAILABLE', 'later', { param: 'model', retryAfter: 2, cause }), {
    param: 'model',
    retryAfter: 2,
    cause,
  });
});

test('no wait breaks an answer: each protocol says a whole number of seconds that clients can count', (t) => {
  for (const [given, said] of [
    [1e300, 2_147_483],
    [Number.POSITIVE_INFINITY, 2_147_483],
    [Number.NaN, 1],
    [-5, 0],
    [0.2, 1],
    [7, 7],
  ] as const) {
    const error = new DomainError('RATE_LIMIT_EXCEEDED', 'slow down', { retryAfter: given });
    t.is(errorHeaders(error)['retry-after'], String(said));
    t.true(envelopeBody(error).includes('slow down'));
    const { metadata } = toConnectError(error);
    t.is(metadata.get('retry-after'), String(said));
    t.is(metadata.get('grpc-retry-pushback-ms'), String(1000 * said));
  }
});
