/**
 * Nothing that comes in one read ends the process, and nothing of it stays: a request of every kind with a frame of
 * every kind behind it, the preface cut anywhere, in cleartext and behind TLS, and at the operator's port. What is read
 * together with the preface Node handles before it has told anybody of the session.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import test from 'ava';
import { makeCertificate } from '../support/certificates.ts';
import { untilHeld } from '../support/held.ts';
import { send } from '../support/http.ts';
import { OPENINGS, SEQUELS } from '../support/http2-crash-cases.ts';
import { PREFACE, settings } from '../support/http2-frames.ts';
import { metricsPortOf } from '../support/scrape.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { startService, type TestService } from '../support/service.ts';

const { certFile, keyFile } = makeCertificate('crash');
const engine = createScriptedEngine();
const plain = await startService({ UMPIRE_METRICS_PORT: '0' }, { engine });
const secure = await startService({ LOG_LEVEL: 'warn', TLS_CERT: certFile, TLS_KEY: keyFile }, { engine });
test.after.always(() => Promise.all([plain.stop(), secure.stop()]));

/** Milliseconds that an answer may take before the connection is closed from this side. */
const SHORT = 15;

/** Sends the parts, one segment each, and closes. */
function throwAt(socket: Socket, parts: readonly Uint8Array[]): Promise<void> {
  return new Promise((resolve) => {
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('data', () => {});
    socket.once('close', () => resolve());
    const begin = async (): Promise<void> => {
      for (const part of parts) {
        socket.write(part);
        await new Promise((next) => setTimeout(next, SHORT));
      }
      socket.destroy();
    };
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => void begin());
  });
}

async function throwAll(open: () => Socket, cases: readonly (readonly Uint8Array[])[]): Promise<void> {
  const left = [...cases];
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      for (let parts = left.pop(); parts !== undefined; parts = left.pop()) await throwAt(open(), parts);
    }),
  );
}

/** Everything that was held is given back: what leaked would be counted for ever. */
const untilNothingIsHeld = (service: TestService) =>
  untilHeld(service, ({ connections, requests, watches, unread }) => connections + requests + watches + unread === 0);

const start = Buffer.concat([PREFACE, settings()]);
const together = Object.values(OPENINGS).flatMap((opening) =>
  Object.values(SEQUELS).map((sequel) => [Buffer.concat([start, opening, sequel])]),
);

test.serial('every request with every frame behind it, in one segment with the preface', async (t) => {
  t.true(together.length > 1400);
  await throwAll(() => connect(plain.port, '127.0.0.1'), together);
  t.is((await send(plain.port, { path: '/health/live' })).status, 200);
  await t.notThrowsAsync(untilNothingIsHeld(plain));
});

/**
 * Refused before its body is read: there is no key. Nobody listens to the request any more once its response is over.
 */
const UNREAD =
  'POST /umpire.v1.CatalogService/GetCatalog HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}';

// What goes unheard is an error of the request's, which Node emits with its connection's end: ava fails for it as
// an uncaught exception.
test.serial('calls in a pipeline whose connection ends before their turn', async (t) => {
  const cases = [UNREAD + UNREAD, UNREAD.repeat(4), `${UNREAD.repeat(2)}\0\r\n\r\n`].map((text) => [Buffer.from(text)]);
  await throwAll(() => connect(plain.port, '127.0.0.1'), [...cases, ...cases, ...cases]);
  await throwAll(() => {
    const socket = connect(plain.port, '127.0.0.1');
    socket.once('connect', () => setImmediate(() => socket.resetAndDestroy()));
    return socket;
  }, Array.from({ length: 20 }, () => cases).flat());
  t.is((await send(plain.port, { path: '/health/live' })).status, 200);
  await t.notThrowsAsync(untilNothingIsHeld(plain));
});

const expecting = [...Object.entries(OPENINGS)].filter(([name]) => name.startsWith('Expect') || name === 'CONNECT');

const parted = expecting.flatMap(([, opening]) =>
  ['RST 8', 'RST 0', 'DATA with broken padding', 'GOAWAY 1'].flatMap((sequel) => {
    const rest = Buffer.concat([PREFACE, settings(), opening, SEQUELS[sequel] as Buffer]);
    return [1, 3, 12, 18, 23, 24, 27, 33].map((at) => [rest.subarray(0, at), rest.subarray(at)]);
  }),
);

test.serial('the same in two reads, the preface cut anywhere', async (t) => {
  await throwAll(() => connect(plain.port, '127.0.0.1'), parted);
  await t.notThrowsAsync(untilNothingIsHeld(plain));
});

test.serial('behind TLS', async (t) => {
  const open = (): Socket =>
    connectSecure({ port: secure.port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] });
  const cases = [
    ...expecting.flatMap(([, opening]) => Object.values(SEQUELS).map((sequel) => [start, opening, sequel])),
    ...expecting.flatMap(([, opening]) =>
      Object.values(SEQUELS).map((sequel) => [Buffer.concat([start, opening, sequel])]),
    ),
  ];
  await throwAll(
    open,
    cases.filter((_, index) => index % 3 === 0),
  );
  await t.notThrowsAsync(untilNothingIsHeld(secure));
});

const operators = (): Socket => connect(metricsPortOf(plain), '127.0.0.1');

async function operatorsPortAnswers(): Promise<readonly number[]> {
  const paths = ['/health/live', '/metrics'];
  return Promise.all(paths.map(async (path) => (await send(metricsPortOf(plain), { path })).status));
}

test.serial("at the operator's port, which knows no frames", async (t) => {
  await throwAll(operators, together);
  await throwAll(operators, parted);
  t.deepEqual(await operatorsPortAnswers(), [200, 200]);
});

const METRICS = 'GET /metrics HTTP/1.1\r\nHost: a\r\n';
/** Requests of HTTP/1.1 that ask for more than an answer. */
const REQUESTS = [
  `${METRICS}\r\n`,
  `HEAD /health/ready HTTP/1.1\r\nHost: a\r\n\r\n`,
  `${METRICS}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`,
  `${METRICS}Expect: 200-ok\r\n\r\n`,
  `${METRICS}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`,
  `${METRICS}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nTrailer: x\r\n\r\n`,
  'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n',
  'POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{}',
  'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n',
];
/** What stands behind a request in the same segment. */
const BEHIND = ['', '\0\r\n\r\n', 'GET', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', ...REQUESTS];

test.serial("at the operator's port, pipelines of every two requests, whole, cut anywhere and reset", async (t) => {
  const pipelines = REQUESTS.flatMap((first) => BEHIND.map((second) => Buffer.from(first + second)));
  await throwAll(
    operators,
    pipelines.map((bytes) => [bytes]),
  );
  const cuts = pipelines.flatMap((bytes, index) => {
    const at = 1 + ((index * 7) % (bytes.length - 1));
    return [[bytes.subarray(0, at), bytes.subarray(at)]];
  });
  await throwAll(operators, cuts);
  await throwAll(
    () => {
      const socket = operators();
      socket.once('connect', () => setImmediate(() => socket.resetAndDestroy()));
      return socket;
    },
    pipelines.map((bytes) => [bytes]),
  );
  t.deepEqual(await operatorsPortAnswers(), [200, 200]);
});
