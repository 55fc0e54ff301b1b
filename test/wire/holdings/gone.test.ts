/**
 * Whatever a peer has sent when its connection ends: what was counted for its requests is given back at once, and each
 * has its line in the log.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import test from 'ava';
import { JobCanceled } from '../../../src/engine/errors.ts';
import { VALID_BODY } from '../../support/answers.ts';
import { untilHeld } from '../../support/held.ts';
import { DECIDE, frame, openSession, validMessage } from '../../support/http.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';

// Decisions last until their caller is gone.
const engine = createScriptedEngine(async (_, { signal }) => {
  await once(signal, 'abort');
  throw new JobCanceled();
});
const service = await startService({}, { engine });
test.after.always(() => service.stop());

const BODY = JSON.stringify(VALID_BODY);
const get = (headers = '', method = 'GET', target = '/v1/models'): string =>
  `${method} ${target} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`;
const post = (headers = `Content-Length: ${BODY.length}\r\n`, path = '/v1/decisions'): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${headers}\r\n${BODY}`;

/** Bytes that one client may send behind the other; some are no request, some end what comes behind them. */
const PIECES: Readonly<Record<string, string>> = {
  'a decision': post(),
  'a decision over Connect': post(undefined, DECIDE),
  'a decision, expecting 100': post(`Expect: 100-continue\r\nContent-Length: ${BODY.length}\r\n`),
  'half a decision': post().slice(0, -9),
  'a malformed chunk': post('Transfer-Encoding: chunked\r\n'),
  'a refused coding': post('Transfer-Encoding: gzip, chunked\r\n'),
  'a list': get(),
  'a list, the last': get('Connection: close\r\n'),
  'a list, upgraded': get('Connection: Upgrade\r\nUpgrade: h2c\r\n'),
  HEAD: get('', 'HEAD'),
  CONNECT: get('', 'CONNECT', 'a:443'),
  'half a head': 'GET /v1/mod',
  noise: '\0\0\0\r\n\r\n',
};

/** How a client leaves, once its bytes are written. */
const ENDS = {
  closed: (socket: Socket) => socket.destroySoon(),
  reset: (socket: Socket) => socket.resetAndDestroy(),
  async later(socket: Socket) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    socket.destroy();
  },
};

/** Connections at one time. */
const PARALLEL = 128;

const pairs = Object.entries(PIECES).flatMap(([a, first]) =>
  Object.entries(PIECES).map(([b, second]) => [`${a}, ${b}`, first + second] as const),
);
const triples = pairs.flatMap(([two, bytes]) =>
  Object.entries(PIECES).map(([c, third]) => [`${two}, ${c}`, bytes + third] as const),
);

for (const [pipelines, title, leave] of [
  [triples, 'a pipeline of any three, whose client leaves with all that is sent', ENDS.closed],
  [pairs, 'a pipeline of any two, whose client leaves by a reset', ENDS.reset],
  [pairs, 'a pipeline of any two, whose client leaves a moment later', ENDS.later],
] as const) {
  test.serial(title, async (t) => {
    for (let at = 0; at < pipelines.length; at += PARALLEL) {
      const some = pipelines.slice(at, at + PARALLEL);
      await Promise.all(
        some.map(async ([, bytes]) => {
          const socket = connect(service.port, '127.0.0.1').on('error', () => {});
          await once(socket.resume(), 'connect');
          await new Promise((resolve) => socket.write(bytes, resolve));
          await leave(socket);
        }),
      );
      // Of a reset the server may still be reading what came before.
      await untilHeld(service, ({ requests, connections }) => requests + connections === 0, 5000).catch((error) =>
        t.fail(`${some[0]?.[0]} to ${some.at(-1)?.[0]}: ${error.message}`),
      );
    }
    t.pass();
  });
}

test.serial(
  'requests behind which a CONNECT came have their lines in the log, and no work goes on for them',
  async (t) => {
    const named = (id: string): string => `Content-Length: ${BODY.length}\r\nX-Request-ID: ${id}\r\n`;
    const socket = connect(service.port, '127.0.0.1').on('error', () => {});
    socket.write(post(named('gone-1')) + post(named('gone-2')) + post(named('gone-3')) + get('', 'CONNECT', 'a:443'));
    await untilHeld(service, ({ requests }) => requests === 3);
    socket.destroy();
    await untilHeld(service, ({ requests }) => requests === 0, 5000);
    const lines = service.log.filter(({ callerRequestId }) => String(callerRequestId).startsWith('gone-'));
    t.deepEqual(
      lines.map(({ reason, callerRequestId }) => [callerRequestId, reason]),
      [
        ['gone-1', 'CANCELED'],
        ['gone-2', 'CANCELED'],
        ['gone-3', 'CANCELED'],
      ],
    );
  },
);

test.serial('a session that ends with streams of every state gives them back', async (t) => {
  for (const leave of ['destroy', 'close'] as const) {
    const session = openSession(service.port);
    const json = { ':method': 'POST', ':path': '/v1/decisions', 'content-type': 'application/json' };
    const grpc = { ':method': 'POST', ':path': DECIDE, 'content-type': 'application/grpc', te: 'trailers' };
    const begin = (headers: Record<string, string>, end: boolean, body?: string | Buffer): void => {
      const stream = session.request(headers, { endStream: false }).on('error', () => {});
      if (body !== undefined) stream.write(body);
      if (end) stream.end();
    };
    begin(json, true, BODY);
    begin(json, false, BODY);
    begin(json, false, '{');
    begin(json, false);
    begin({ ...json, expect: '100-continue' }, false);
    begin(grpc, true, frame(validMessage));
    begin(grpc, false, frame(validMessage));
    begin(grpc, false, frame(validMessage).subarray(0, 7));
    begin({ ...grpc, 'content-type': 'application/proto' }, false);
    begin({ ':method': 'CONNECT', ':authority': 'a:443' }, false);
    await untilHeld(service, ({ requests }) => requests >= 9);
    if (leave === 'destroy') session.destroy();
    else (session.socket as Socket).destroy();
    await untilHeld(service, ({ requests, connections }) => requests + connections === 0, 5000);
  }
  t.pass();
});
