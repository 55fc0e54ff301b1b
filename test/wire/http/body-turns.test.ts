/**
 * Large bodies that arrive together are worked on in turns of the event loop, one in each, so that others are
 * served between them.
 */

import { connect } from 'node:net';
import test from 'ava';
import { bodyTurn } from '../../../src/wire/http/byte-collector.ts';
import { VALID_BODY } from '../../support/answers.ts';
import { DECIDE } from '../../support/http.ts';
import { createScriptedEngine, descending } from '../../support/scripted-engine.ts';
import { scriptedService } from '../../support/service.ts';

test('a turn is had by one alone, and a small body needs none', async (t) => {
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
  test(`bodies that are complete at the same time reach their handlers in different turns: ${what}`, async (t) => {
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
  });
}
