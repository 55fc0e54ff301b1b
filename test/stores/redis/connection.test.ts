/** What a connection attempt costs the process that makes it, and the slots of a cluster. */
import test from 'ava';
import { newClient, nodeOptions, socketOptions } from '../../../src/stores/redis/connection.ts';
import { slotOf } from '../../../src/stores/redis/names.ts';

test('clients of different servers share one class, so that trying again while Redis is away does not hold up the process', (t) => {
  const clientOf = (text: string) => {
    const url = new URL(text);
    return newClient({
      ...nodeOptions(url),
      socket: socketOptions(url, { host: url.hostname, port: Number(url.port) }),
    });
  };
  const [one, other] = [clientOf('redis://127.0.0.1:1001'), clientOf('redis://user:secret@127.0.0.1:1002/3')];
  t.is(one.constructor, other.constructor);
  t.like(one.options, { socket: { port: 1001 }, disableOfflineQueue: true });
  t.is(one.options?.username, undefined);
  t.like(other.options, { socket: { port: 1002 }, username: 'user', password: 'secret', database: 3 });
});

test('the checksum is CRC-16/XMODEM', (t) => {
  t.is(slotOf('123456789'), 0x31c3 % 16_384);
  t.is(slotOf(''), 0);
});

test('the part in the first braces decides, unless there is none', (t) => {
  t.is(slotOf('umpire:{acme}:catalog:a'), slotOf('acme'));
  t.is(slotOf('{acme}{other}'), slotOf('acme'));
  t.is(slotOf('a{{acme}}b'), slotOf('{acme'));
  for (const key of ['a{}b', 'a{b', 'a}b{', '{}']) t.not(slotOf(key), slotOf(''));
});
