/**
 * A peer that has vanished while streams are open is noticed; one that listens, or that only sends, is
 * not taken for one.
 */
import { once } from 'node:events';
import { connect as connectSession, createServer, type ServerHttp2Stream } from 'node:http2';
import test from 'ava';
import { SessionWatch } from '../../../src/wire/listener/http2-sessions.ts';
import { FLAG, frame, goaway, headers, openRawHttp2, request, TYPE } from '../../support/http2-frames.ts';
import { listen } from '../../support/listening.ts';

/** A server whose streams stay open, watched with times that a test can wait for. */
async function startWatched(interval = 1000): Promise<{ readonly port: number; close(): void }> {
  const watch = new SessionWatch({ interval, busyTimeout: 1000 });
  const server = createServer();
  server.on('session', (session) => watch.add(session));
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {});
    stream.respond({ ':status': 200 });
    stream.resume();
  });
  return {
    port: await listen(server),
    close() {
      watch.destroyAll();
      watch.stop();
      server.close();
    },
  };
}

test('one that answers no ping goes, with its stream', async (t) => {
  const server = await startWatched();
  const raw = await openRawHttp2(server.port);
  raw.send(headers(1, request('GET', '/')));
  await raw.until(TYPE.headers, 1);
  await raw.until(TYPE.ping);
  await raw.untilClosed();
  t.pass();
  server.close();
});

test('one that takes leave and then breaks the protocol goes soon, though its connection is not read any more', async (t) => {
  const server = await startWatched(60_000);
  for (const broken of [frame(TYPE.ping, 0, Buffer.alloc(3)), frame(TYPE.data, 0, Buffer.from('x'))]) {
    const raw = await openRawHttp2(server.port);
    raw.send(headers(1, request('GET', '/')), goaway(0, 0), broken);
    await raw.untilClosed(10_000);
  }
  t.pass();
  server.close();
});

test('one that takes leave keeps its streams', async (t) => {
  const server = await startWatched(60_000);
  const session = connectSession(`http://127.0.0.1:${server.port}`);
  const stream = session.request({ ':path': '/' });
  stream.on('error', () => {});
  await once(stream, 'response');
  session.goaway(0);
  await new Promise((resolve) => setTimeout(resolve, 3000));
  t.false(stream.destroyed);
  t.false(session.destroyed);
  session.destroy();
  server.close();
});

test('one that answers, and one that sends without answering, stay', async (t) => {
  const server = await startWatched();
  const session = connectSession(`http://127.0.0.1:${server.port}`);
  session.request({ ':path': '/' }).on('error', () => {});
  const sender = await openRawHttp2(server.port);
  sender.send(headers(1, request('POST', '/'), 0));
  const send = setInterval(() => sender.send(frame(TYPE.data, 1, Buffer.from('x'))), 200);
  let closed = false;
  session.once('close', () => {
    closed = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 6000));
  clearInterval(send);
  t.false(closed);
  t.false(sender.closed);
  sender.send(frame(TYPE.data, 1, Buffer.alloc(0), FLAG.endStream));
  sender.destroy();
  session.destroy();
  server.close();
});
