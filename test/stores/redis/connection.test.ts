/** What a connection attempt costs the process that makes it. */
import test from 'ava';
import { newClient, nodeOptions, socketOptions } from '../../../src/stores/redis/connection.ts';

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
