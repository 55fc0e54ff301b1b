/**
 * Room for answers of unknown size: small ones go through in short turns, large ones within the bounds, whoever asks
 * and however many at a time.
 */
import test from 'ava';
import { DomainError } from '../../../src/domain/errors.ts';
import { Accounts } from '../../../src/wire/holdings/accounts.ts';
import type { OpenRequest } from '../../../src/wire/holdings/open-request.ts';
import { Reservations } from '../../../src/wire/holdings/reservations.ts';
import { VALID_BODY } from '../../support/answers.ts';
import { callGrpc, errorDetails, openGrpc } from '../../support/grpc.ts';
import { untilHeld } from '../../support/held.ts';
import { openSession, send, sendH2 } from '../../support/http.ts';
import { keyedService } from '../../support/keys.ts';

const accounts = new Accounts();
const requestOf = (address: string): OpenRequest =>
  ({ account: accounts.of(address), reserved: 0, unsettled: false }) as unknown as OpenRequest;
const outcome = (room: Promise<void> | undefined): { state: 'room' | 'waits' | string } => {
  const seen: { state: string } = { state: room === undefined ? 'room' : 'waits' };
  room?.then(
    () => {
      seen.state = 'room';
    },
    (fault: DomainError) => {
      seen.state = fault.reason;
    },
  );
  return seen;
};
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('who finds no room because of sizes that are not known waits, in order; small ones make room', async (t) => {
  const reservations = new Reservations({ perAddress: 30, total: 100 });
  const requests = Array.from({ length: 6 }, () => requestOf('in-order'));
  const seen = requests.map((request) => outcome(reservations.reserve(request, 10)));
  await turn();
  t.deepEqual(
    seen.map(({ state }) => state),
    ['room', 'room', 'room', 'waits', 'waits', 'waits'],
  );
  reservations.settle(requests[1] as OpenRequest, 1);
  await turn();
  // One is not enough for another.
  t.is(seen[3]?.state, 'waits');
  reservations.settle(requests[0] as OpenRequest, 9);
  await turn();
  t.deepEqual(
    seen.map(({ state }) => state),
    ['room', 'room', 'room', 'room', 'waits', 'waits'],
  );
  reservations.release(requests[2] as OpenRequest);
  await turn();
  t.deepEqual([seen[4]?.state, seen[5]?.state], ['room', 'waits']);
  t.is(accounts.of('in-order').reserved, 30);
});

test('who finds none because of answers that are not read is refused, also after a wait', async (t) => {
  const reservations = new Reservations({ perAddress: 30, total: 100 });
  const requests = Array.from({ length: 5 }, () => requestOf('large'));
  const seen = requests.map((request) => outcome(reservations.reserve(request, 10)));
  for (const request of requests.slice(0, 3)) reservations.settle(request, 10);
  await turn();
  t.deepEqual([seen[3]?.state, seen[4]?.state], ['waits', 'waits']);
  accounts.of('large').unread = 30;
  reservations.measured({ unread: 30, reserved: 0 });
  await turn();
  t.deepEqual([seen[3]?.state, seen[4]?.state], ['CONCURRENCY_LIMIT_EXCEEDED', 'CONCURRENCY_LIMIT_EXCEEDED']);
  t.throws(() => reservations.reserve(requestOf('large'), 10), { instanceOf: DomainError });
  t.is(reservations.reserve(requestOf('elsewhere'), 10), undefined);
});

test('the bound in all holds for many addresses; one that waits there holds up no other of another address', async (t) => {
  const reservations = new Reservations({ perAddress: 30, total: 50 });
  const requests = Array.from({ length: 12 }, (_, index) => requestOf(`all-${index % 4}`));
  const seen = requests.map((request) => outcome(reservations.reserve(request, 10)));
  const states = async (): Promise<string[]> => {
    await turn();
    return seen.map(({ state }) => state);
  };
  t.is((await states()).filter((state) => state === 'room').length, 5);
  for (const request of requests.slice(0, 5)) reservations.settle(request, 1);
  t.is((await states()).filter((state) => state === 'room').length, 9);
  // What is measured counts, too.
  reservations.measured({ unread: 45, reserved: 0 });
  for (const request of requests.slice(5, 9)) reservations.settle(request, 10);
  t.true((await states()).slice(9).every((state) => state === 'OVERLOADED'));
});

test('one that leaves while it waits gives up its place', async (t) => {
  const reservations = new Reservations({ perAddress: 10, total: 100 });
  const [first, second, third] = [requestOf('leaves'), requestOf('leaves'), requestOf('leaves')];
  const seen = [first, second, third].map((request) => outcome(reservations.reserve(request, 10)));
  reservations.release(second);
  // Work that ends after its connection settles nothing.
  reservations.release(first);
  reservations.settle(first, 10);
  await turn();
  t.deepEqual(
    seen.map(({ state }) => state),
    ['room', 'CANCELED', 'room'],
  );
  reservations.release(third);
  t.is(accounts.of('leaves').reserved, 0);
});

test('two hundred reads of small catalogs at one time from one address are answered, over gRPC and REST', async (t) => {
  const service = await keyedService(t);
  const authorization = `Bearer ${service.key}`;
  const { model, choices } = VALID_BODY;
  const body = JSON.stringify({ id: 'small', model, choices });
  t.is((await send(service.port, { path: '/v1/catalogs', headers: { authorization }, body })).status, 201);
  const grpc = openGrpc(service.port);
  t.teardown(grpc.close);
  const calls = await Promise.all(
    Array.from({ length: 200 }, () =>
      callGrpc(grpc.catalogs, 'GetCatalog', { id: 'small' }, { metadata: { authorization } }),
    ),
  );
  t.deepEqual([...new Set(calls.map(({ error }) => error?.details))], [undefined]);
  // A session has a hundred streams at a time.
  const sessions = [openSession(service.port), openSession(service.port)];
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      sendH2(sessions[index % 2] as (typeof sessions)[0], { path: '/v1/catalogs/small', headers: { authorization } }),
    ),
  );
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  for (const session of sessions) session.destroy();
  await untilHeld(service, ({ requests }) => requests === 0);
});

test('of as many reads of large ones no more are made at a time than may wait to be read; others wait, or are told', async (t) => {
  const service = await keyedService(t, { UMPIRE_UNREAD_PER_ADDRESS: '8' });
  const authorization = `Bearer ${service.key}`;
  const choices = Array.from({ length: 300 }, (_, index) => `${index}${'x'.repeat(3400)}`);
  const body = JSON.stringify({ id: 'large', model: VALID_BODY.model, choices });
  t.is((await send(service.port, { path: '/v1/catalogs', headers: { authorization }, body })).status, 201);
  const grpc = openGrpc(service.port);
  t.teardown(grpc.close);
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, service.app.holdings().unread);
  }, 10);
  const calls = await Promise.all(
    Array.from({ length: 100 }, () =>
      callGrpc(grpc.catalogs, 'GetCatalog', { id: 'large' }, { metadata: { authorization } }),
    ),
  );
  clearInterval(watch);
  const refused = calls.filter(({ error }) => error !== undefined);
  t.true(calls.length - refused.length >= 7, `${refused.length}`);
  for (const { error, trailers } of refused) {
    t.is(error?.code, 8);
    t.like(errorDetails(trailers), { reason: 'CONCURRENCY_LIMIT_EXCEEDED', retrySeconds: 1 });
  }
  t.true(most < 10 << 20, `${most}`);
  await untilHeld(service, ({ requests }) => requests === 0);
});
