import test from 'ava';
import { engineFault } from '../../src/domain/engine-faults.ts';
import type { DomainError } from '../../src/domain/errors.ts';
import {
  DeadlineTooShort,
  EngineClosing,
  EngineFailed,
  EngineOverloaded,
  JobCanceled,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../../src/engine/errors.ts';

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
    const fault = engineFault(error) as DomainError;
    t.like(fault, expected);
    t.notRegex(fault.message, /onnx|models\//);
  });
}

test('any other error stays what it is', (t) => {
  const error = new Error('a bug');
  t.is(engineFault(error), error);
  t.is(engineFault('thrown text'), 'thrown text');
});
