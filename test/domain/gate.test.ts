/** The order in which the gate asks: with everything wrong at first, and one thing more right in each row. */
import test from 'ava';
import { Authenticator } from '../../src/domain/authenticate.ts';
import { BodyLimits } from '../../src/domain/body-limits.ts';
import { Call, type Place } from '../../src/domain/call.ts';
import { NO_PROXIES } from '../../src/domain/client-address.ts';
import { DomainError } from '../../src/domain/errors.ts';
import { type Access, Gate, type Refused } from '../../src/domain/gate.ts';
import { Limits } from '../../src/domain/limits.ts';
import { SILENT_LOG } from '../../src/stores/stores.ts';

const OFF = { rate: 'off', concurrency: 'off', quota: 'off' } as const;
const MIB = 1024 * 1024;

test('key, access, bytes of answers, the process, limits, the queue', async (t) => {
  const metered: string[] = [];
  const watchdog: { refused: Refused } = { refused: 'anonymous' };
  const engine = { seconds: 3 as number | undefined, crowded: () => engine.seconds };
  let now = 0;
  const answers = new BodyLimits(
    { anonymous: { perSecond: 1, burst: 1 }, key: 'off', all: 'off' },
    'answers',
    () => now,
  );
  const limits = new Limits({ settings: { anonymous: { ...OFF, concurrency: 1 }, key: OFF }, log: SILENT_LOG });
  const authenticator = new Authenticator({ keys: { find: async () => undefined }, limitBadKeys: false });
  const gate = new Gate({
    authenticator,
    limits,
    answers,
    trustedProxies: NO_PROXIES,
    anonymous: true,
    engine,
    watchdog,
  });
  let authorization: string | undefined = 'Bearer junk';
  let access: Access = { access: 'keyed', limits: 'decision' };
  const asked = async (): Promise<string> => {
    const call = new Call(10_000);
    call.place = { meter: () => void metered.push(call.requestId), keyed() {} } as unknown as Place;
    try {
      await gate.admit(call, { peer: '192.0.2.1', forwarded: '192.0.2.2', authorization }, access);
      return `${call.tenant} ${call.times.admittedAt !== undefined}`;
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      return `${error.reason} ${error.retryAfter}`;
    } finally {
      call.answered();
    }
  };
  const caller = { kind: 'anonymous', address: '192.0.2.1' } as const;
  answers.count(caller, MIB);
  const other = await limits.grant(caller, 'decision', new Call(0).storeBudget);

  t.is(await asked(), 'AUTHENTICATION_REQUIRED undefined');
  t.is(metered.length, 0);
  authorization = undefined;
  t.is(await asked(), 'AUTHENTICATION_REQUIRED undefined');
  t.is(metered.length, 1);
  access = { access: 'anyone', limits: 'decision' };
  t.is(await asked(), 'RATE_LIMIT_EXCEEDED 1');
  now += 2_000;
  t.is(await asked(), 'OVERLOADED 1');
  watchdog.refused = 'nobody';
  t.is(await asked(), 'CONCURRENCY_LIMIT_EXCEEDED 1');
  other.release();
  t.is(await asked(), 'OVERLOADED 3');
  engine.seconds = undefined;
  t.is(await asked(), '192.0.2.1 true');
  t.is(metered.length, 1);
});

test('a caller that leaves while its limits are asked for is not let in, and keeps none of them', async (t) => {
  const call = new Call(10_000);
  let released = 0;
  const grant = async () => {
    call.depart();
    return { release: () => released++ };
  };
  const gate = new Gate({
    authenticator: new Authenticator({ keys: { find: async () => undefined }, limitBadKeys: false }),
    limits: { grant } as unknown as Limits,
    answers: new BodyLimits({ anonymous: 'off', key: 'off', all: 'off' }, 'answers'),
    trustedProxies: NO_PROXIES,
    anonymous: true,
    engine: { crowded: () => undefined },
    watchdog: { refused: 'nobody' },
  });
  const origin = { peer: '192.0.2.1', forwarded: undefined, authorization: undefined };
  // Nothing would tell the reader of its body that there is no more.
  await t.throwsAsync(gate.admit(call, origin, { access: 'anyone', limits: 'decision' }), {
    instanceOf: DomainError,
    message: /left/,
  });
  call.answered();
  t.is(released, 1);
});
