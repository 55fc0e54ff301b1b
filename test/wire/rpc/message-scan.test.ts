/** Scanning a message takes time for its bytes, and leaves Connect with a bounded number of fields. */
import test from 'ava';
import { CreateDecisionRequestSchema } from '../../../gen/umpire/v1/decision_service_pb.ts';
import { DomainError } from '../../../src/domain/errors.ts';
import { MessageScan } from '../../../src/wire/rpc/message-scan.ts';
import { costs, hostileMessages } from '../../support/hostile-bodies.ts';
import { validMessage } from '../../support/http.ts';

const scan = new MessageScan(CreateDecisionRequestSchema);

const reasonOf = (work: () => void): string => {
  try {
    work();
  } catch (error) {
    if (error instanceof DomainError) return error.reason;
    throw error;
  }
  return 'none';
};

test('a message of a request passes, cut off or not', (t) => {
  for (let length = 0; length <= validMessage.length; length += 1)
    t.is(
      reasonOf(() => scan.protobuf(validMessage.subarray(0, length))),
      'none',
    );
});

test('one of more fields than a request can need does not', (t) => {
  const many = (...unit: readonly number[]): Buffer => Buffer.alloc(unit.length * 5000, Buffer.from(unit));
  t.is(
    reasonOf(() => scan.protobuf(many(0x78, 0x01))),
    'INVALID_MESSAGE',
  );
  t.is(
    reasonOf(() => scan.protobuf(Buffer.concat([validMessage, many(0x0a, 0x00)]))),
    'INVALID_MESSAGE',
  );
  t.is(
    reasonOf(() => scan.protobuf(many(0x22, 0x01, 0x61))),
    'INVALID_CHOICES',
  );
  t.is(
    reasonOf(() => scan.protobuf(many(0x7b))),
    'INVALID_MESSAGE',
  );
});

test('what the library would read otherwise than it is written is refused, and hides no fields behind it', (t) => {
  const many = Buffer.alloc(5000 * 2, Buffer.from([0x78, 0x01]));
  const disguises = {
    'a string with the wire type of 32 bits, whose length the library reads': [0x1d, 0x79, 0x3d, 0x9a, 0x2a, 0x06],
    'a string that is a group': [0x2b, 0x2c],
    'a string as a number': [0x08, 0x01],
  };
  for (const [what, bytes] of Object.entries(disguises)) {
    t.is(
      reasonOf(() => scan.protobuf(Buffer.concat([Buffer.from(bytes), many]))),
      'INVALID_MESSAGE',
      what,
    );
    t.is(
      reasonOf(() => scan.protobuf(Buffer.from(bytes))),
      'INVALID_MESSAGE',
      what,
    );
  }
  const overlong = {
    'a length beyond 32 bits': [0x7a, 0x80, 0x80, 0x80, 0x80, 0x10],
    'a number of 12 bytes': [0x78, ...Array.from({ length: 11 }, () => 0x80), 0x01],
  };
  for (const [what, bytes] of Object.entries(overlong)) {
    t.is(
      reasonOf(() => scan.protobuf(Buffer.concat([Buffer.from(bytes), many]))),
      'INVALID_MESSAGE',
      what,
    );
  }
});

// JSON is read by the scanner of bodies, which http/strict-json.test.ts times.
for (const [what, make] of Object.entries(hostileMessages)) {
  test.serial(`a message of ${what} takes no longer than its size`, (t) => {
    const [small, large] = costs(make, (bytes) => scan.protobuf(bytes));
    t.true(large < 16 * 4 * Math.max(small, 0.5), `${small} ms, then ${large} ms`);
    t.true(large < 40, `${large} ms`);
  });
}
