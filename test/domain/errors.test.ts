/** The table of errors, how each protocol says them, and what an engine's failures are to a caller. */
import test from 'ava';
import { ErrorReason } from '../../gen/umpire/v1/error_reason_pb.ts';
import { DomainError, ERROR_TABLE, type ErrorReason as Reason } from '../../src/domain/errors.ts';
import { faultOf } from '../../src/domain/failures.ts';
import {
  DeadlineTooShort,
  EngineClosing,
  EngineFailed,
  EngineOverloaded,
  JobCanceled,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../../src/engine/errors.ts';
import { envelopeBody, errorHeaders } from '../../src/wire/http/response.ts';
import { toConnectError } from '../../src/wire/rpc/fault.ts';

const rows = Object.entries(ERROR_TABLE) as [Reason, (typeof ERROR_TABLE)[Reason]][];

test('every reason of the proto has a row, and no row is without a reason', (t) => {
  const reasons = Object.keys(ErrorReason).filter((name) => Number.isNaN(Number(name)) && name !== 'UNSPECIFIED');
  t.deepEqual(rows.map(([reason]) => reason as string).toSorted(), reasons.toSorted());
});

test('types belong to statuses as the contract says', (t) => {
  for (const [reason, { http, type }] of rows) {
    const expected =
      reason === 'MODEL_UNAVAILABLE'
        ? 'model_error'
        : http === 401
          ? 'authentication_error'
          : http === 429
            ? 'rate_limit_error'
            : http >= 500
              ? 'server_error'
              : 'invalid_request_error';
    t.is(type, expected, reason);
  }
});

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

const CASES: readonly (readonly [Error, Partial<DomainError>])[] = [
  [new EngineOverloaded(7), { reason: 'OVERLOADED', retryAfter: 7, param: null }],
  [
    new ModelUnavailable('the file /models/x is broken', 3),
    { reason: 'MODEL_UNAVAILABLE', retryAfter: 3, param: 'model' },
  ],
  [new JobDeadlinePassed(), { reason: 'DEADLINE_EXCEEDED', retryAfter: 1 }],
  [
    new DeadlineTooShort(713.2, 49.96),
    {
      reason: 'DEADLINE_EXCEEDED',
      retryAfter: undefined,
      param: null,
      message: "this takes about 0.71 s, and the caller's deadline leaves 0.05 s; allow more time",
    },
  ],
  [new JobCanceled(), { reason: 'CANCELED' }],
  [new EngineClosing(), { reason: 'DRAINING', retryAfter: 1 }],
  [new EngineFailed('onnx: bad node'), { reason: 'OVERLOADED', retryAfter: 1 }],
];

for (const [error, expected] of CASES) {
  test(error.name, (t) => {
    const fault = faultOf(error) as DomainError;
    t.like(fault, expected);
    t.notRegex(fault.message, /onnx|models\//);
  });
}

test('any other error stays what it is', (t) => {
  const error = new Error('a bug');
  t.is(faultOf(error), error);
  t.is(faultOf('thrown text'), 'thrown text');
});
