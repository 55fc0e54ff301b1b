/**
 * Bodies are limited by their bytes, in every protocol, and take no more memory than bytes. Large ones that arrive
 * together are worked on in turns of the event loop, one in each, so that others are served between them.
 */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import test from 'ava';
import { ByteCollector, bodyTurn } from '../../../src/wire/http/body.ts';
import { isError, VALID_BODY } from '../../support/answers.ts';
import { DECIDE, send } from '../../support/http.ts';
import { keyedService } from '../../support/keys.ts';
import { PROTOCOLS, type Protocol } from '../../support/protocols.ts';
import { createScriptedEngine, descending } from '../../support/scripted-engine.ts';
import { scriptedService } from '../../support/service.ts';

test('chunks of any size become the bytes that they were', (t) => {
  for (const size of [1, 7, 4096]) {
    const whole = Buffer.from(Array.from({ length: 20_000 }, (_, index) => index % 251));
    const collected = new ByteCollector();
    for (let at = 0; at < whole.length; at += size) collected.add(whole.subarray(at, at + size));
    t.deepEqual(Buffer.from(collected.bytes()), whole);
    t.is(collected.length, whole.length);
  }
  t.is(new ByteCollector().bytes().length, 0);
});

const MIB = 1 << 20;
const BOMB = gzipSync(Buffer.alloc(50 * MIB, ' '));
/** A bucket for an address that holds 1 MiB and fills in an hour. */
const NARROW = { UMPIRE_BODIES_ANONYMOUS: '1/h, burst 1' };

/** What a body may be: its bytes, made of those of a valid request, its compression, and what it gets. */
const BODIES: Readonly<Record<string, readonly [(valid: Buffer) => Uint8Array, string | undefined, string]>> = {
  'a plain one': [(valid) => valid, undefined, 'OK'],
  'one that names no compression': [(valid) => valid, 'identity', 'OK'],
  '2 MiB': [() => Buffer.alloc(2 * MIB, ' '), undefined, 'BODY_TOO_LARGE'],
  '10 MiB': [() => Buffer.alloc(10 * MIB, ' '), undefined, 'BODY_TOO_LARGE'],
  gzip: [(valid) => gzipSync(valid), 'gzip', 'OK'],
  'gzip that is none': [(valid) => valid, 'gzip', 'INVALID'],
  'gzip, cut off': [(valid) => gzipSync(valid).subarray(0, -12), 'gzip', 'INVALID'],
  'gzip in gzip': [(valid) => gzipSync(gzipSync(valid)), 'gzip', 'INVALID'],
  'a gzip bomb': [() => BOMB, 'gzip', 'BODY_TOO_LARGE'],
  br: [(valid) => valid, 'br', 'UNSUPPORTED_ENCODING'],
  'two compressions': [(valid) => gzipSync(valid), 'gzip, br', 'UNSUPPORTED_ENCODING'],
  'an unknown compression': [(valid) => valid, 'x', 'UNSUPPORTED_ENCODING'],
};

for (const [protocol, { encode, ask }] of Object.entries<Protocol>(PROTOCOLS)) {
  const invalid = protocol.startsWith('REST') ? 'INVALID_JSON' : 'INVALID_MESSAGE';
  test(`${protocol}: what a body may be`, async (t) => {
    const { port } = await scriptedService(t);
    for (const [what, [make, coding, expected]] of Object.entries(BODIES)) {
      const reason = await ask(port, make(encode()), { coding });
      t.is(reason, expected === 'INVALID' ? invalid : expected, what);
    }
  });

  test(`${protocol}: a compressed body counts as what it becomes, a plain one as it is, and a key has its own bytes`, async (t) => {
    const service = await keyedService(t, NARROW);
    const large = encode({ input: 'x'.repeat(900_000) });
    // The one that goes beyond is the last, and the next is refused in the middle.
    for (const expected of ['OK', 'OK', 'RATE_LIMIT_EXCEEDED'])
      t.is(await ask(service.port, gzipSync(large), { coding: 'gzip' }), expected);
    t.is(await ask(service.port, large), 'RATE_LIMIT_EXCEEDED');
    const headers = { authorization: `Bearer ${service.key}` };
    t.is(await ask(service.port, large, { headers }), 'OK');
  });

  test(`${protocol}: a bomb counts with the largest size of a body; a small body that is no gzip costs hardly more than it has`, async (t) => {
    const { port } = await scriptedService(t, NARROW);
    t.true(BOMB.length < 64 * 1024, `${BOMB.length}`);
    for (let count = 0; count < 20; count += 1) t.is(await ask(port, Buffer.from('{}'), { coding: 'gzip' }), invalid);
    t.is(await ask(port, BOMB, { coding: 'gzip' }), 'BODY_TOO_LARGE');
    // The second may be refused in the middle, if it comes in pieces.
    await ask(port, BOMB, { coding: 'gzip' });
    t.is(await ask(port, BOMB, { coding: 'gzip' }), 'RATE_LIMIT_EXCEEDED');
  });
}

test('a body of exactly 1 MiB is read, one byte more is not; the name of gzip is in any case, and 415 names it', async (t) => {
  const { port } = await scriptedService(t);
  const text = JSON.stringify(VALID_BODY);
  const padded = text.replace(/}$/, `${' '.repeat(MIB - text.length)}}`);
  t.is((await send(port, { body: padded })).status, 200);
  isError(t, await send(port, { body: `${padded} ` }), { status: 413, code: 'body_too_large', param: null });
  t.is((await send(port, { body: gzipSync(text), headers: { 'content-encoding': 'GZIP' } })).status, 200);
  const refused = await send(port, { body: text, headers: { 'content-encoding': 'br' } });
  isError(t, refused, { status: 415, code: 'unsupported_encoding', param: null });
  t.is(refused.headers['accept-encoding'], 'gzip');
});

test('10 MB without a length: the 413 arrives while the body is still being sent, over REST and Connect', async (t) => {
  // What is left of such a body holds its connection, and with it a stop, for the whole grace.
  const { port } = await scriptedService(t, { UMPIRE_DRAIN_GRACE: '1' });
  for (const path of ['/v1/decisions', DECIDE]) {
    const headers = { 'transfer-encoding': 'chunked', 'content-type': 'application/json' };
    const sent = request({ port, host: '127.0.0.1', path, method: 'POST', headers }).on('error', () => {});
    const answered = once(sent, 'response');
    for (let index = 0; index < 160; index += 1) sent.write('x'.repeat(65_536));
    sent.end();
    const [answer] = (await answered) as [IncomingMessage];
    t.is(answer.statusCode, 413, path);
    await once(answer.resume(), 'end');
  }
});

test('an answer is never compressed, whatever its caller accepts', async (t) => {
  const { port } = await scriptedService(t);
  for (const path of ['/v1/decisions', DECIDE]) {
    const headers = { 'content-encoding': 'gzip', 'accept-encoding': 'gzip, br' };
    const answer = await send(port, { path, headers, body: gzipSync(JSON.stringify(VALID_BODY)) });
    t.is(answer.status, 200);
    t.is(answer.headers['content-encoding'], undefined);
    t.regex(answer.text, /^\{.*minilm-l6@/);
  }
});

test.serial('a turn is had by one alone, and a small body needs none', async (t) => {
  t.is(bodyTurn(64 * 1024), undefined);
  const seen: string[] = [];
  let counting = true;
  const count = (): void => {
    seen.push('turn');
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      await bodyTurn(64 * 1024 + 1);
      seen.push('work');
    }),
  );
  counting = false;
  t.is(seen.filter((each) => each === 'work').length, 8);
  t.false(
    seen.some((each, index) => each === 'work' && seen[index + 1] === 'work'),
    seen.join(' '),
  );
});

const large = Buffer.from(JSON.stringify({ ...VALID_BODY, input: 'x'.repeat(900_000) }));

for (const [what, path, body] of [
  ['REST', '/v1/decisions', large],
  ['Connect', DECIDE, large],
] as const) {
  test.serial(
    `bodies that are complete at the same time reach their handlers in different turns: ${what}`,
    async (t) => {
      let turn = 0;
      const turns: number[] = [];
      const engine = createScriptedEngine((job, terms) => {
        turns.push(turn);
        return descending(job, terms);
      });
      const service = await scriptedService(t, {}, engine);
      const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
      const sockets = Array.from({ length: 8 }, () => connect(service.port, '127.0.0.1'));
      const answered = sockets.map((socket) => new Promise((resolve) => socket.once('data', resolve)));
      for (const socket of sockets) {
        socket.write(head);
        socket.write(body.subarray(0, -1));
      }
      // All but the last byte of each has been read.
      await new Promise((resolve) => setTimeout(resolve, 500));
      let counting = true;
      const count = (): void => {
        turn += 1;
        if (counting) setImmediate(count);
      };
      setImmediate(count);
      for (const socket of sockets) socket.write(body.subarray(-1));
      await Promise.all(answered);
      counting = false;
      for (const socket of sockets) socket.destroy();
      t.is(turns.length, 8);
      t.is(new Set(turns).size, 8, turns.join(' '));
    },
  );
}
