/** D10, D11 and D18: peers that ask for another protocol, that vanish, and that cancel many requests. */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { FLAG, frame, headers, PREFACE, request, rst, settings, TYPE } from '../../test/support/http2-frames.ts';
import { decisionText, sendBytes } from './calls.ts';
import { type Scene, type Shown, sleep, until } from './shown.ts';

/**
 * D10: sends a request with `Upgrade` and the head of a second request in one read, and the second request's body in
 * the next. Shows whether that body is answered as a request.
 */
export async function showUpgrade({ target }: Scene, seconds: number): Promise<Shown> {
  const body = 'GET /v1/models/smuggled HTTP/1.1\r\nHost: a\r\n\r\n';
  const upgrade = 'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n';
  const head = `POST /health/live HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`;
  const statuses = new Set<string>();
  let [tried, smuggled] = [0, 0];
  await until(seconds - 1, async () => {
    const text = await sendBytes(target.port, [upgrade + head, body], 500);
    tried += 1;
    if (text.includes('model_not_found')) smuggled += 1;
    statuses.add([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status).join(' and '));
  });
  return {
    figure: `${[...statuses].join('; ')}: the body was answered as a request in ${smuggled} of ${tried}`,
    defect: smuggled > 0,
  };
}

const WATCH = Buffer.concat([
  headers(
    1,
    request('POST', '/grpc.health.v1.Health/Watch', [
      ['content-type', 'application/grpc'],
      ['te', 'trailers'],
    ]),
    0,
  ),
  frame(TYPE.data, 1, Buffer.alloc(5), FLAG.endStream),
]);
/** Connections of peers that fall silent. */
const VANISHED = 20;
/**
 * Seconds after which the service must have closed a silent connection: a ping each minute, and half a minute for it.
 */
const GONE_AFTER = 105;

/**
 * D11: peers that watch health and then neither send nor acknowledge anything. `later` resolves to the outcome, which
 * is known long after.
 */
export async function showVanished({ target }: Scene, seconds: number): Promise<Shown & { later(): Promise<Shown> }> {
  const began = performance.now();
  let gone = 0;
  let last = 0;
  const sockets: Socket[] = [];
  for (let count = 0; count < VANISHED; count += 1) {
    const socket = connect({ port: target.port, host: '127.0.0.1', localAddress: '127.0.0.1' });
    socket.on('error', () => {}).resume();
    socket.on('close', () => {
      gone += 1;
      last = (performance.now() - began) / 1000;
    });
    socket.write(Buffer.concat([PREFACE, settings(), WATCH]));
    sockets.push(socket);
  }
  await sleep(seconds * 1000);
  const timers = sockets.filter((socket) => keepsAlive(target.port, socket.localPort ?? 0)).length;
  const kernel = `${timers} of ${VANISHED} connections have a keep-alive timer in the kernel`;
  return {
    figure: kernel,
    defect: timers < VANISHED,
    async later() {
      while (gone < VANISHED && performance.now() - began < GONE_AFTER * 1000) await sleep(200);
      const held = VANISHED - gone;
      for (const socket of sockets) socket.destroy();
      const end =
        held === 0 ? `all closed after ${last.toFixed(0)} s` : `${held} still held after ${GONE_AFTER} s of silence`;
      return { figure: `${kernel}; ${end}`, defect: timers < VANISHED || held > 0 };
    },
  };
}

/**
 * Whether the server's end of a connection has a keep-alive timer: state 01 is established, timer 02 is keep-alive
 * (proc_net_tcp(5)).
 */
function keepsAlive(port: number, peer: number): boolean {
  const hex = (number: number): string => `:${number.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .some(
      ([, local, remote, state, , timer]) =>
        local?.endsWith(hex(port)) && remote?.endsWith(hex(peer)) && state === '01' && timer?.startsWith('02:'),
    );
}

/** Requests that one session cancels per second, as a proxy does whose many callers hang up. */
const RESETS = 250;

/**
 * D18: shows whether a session with many cancelled requests is cut off, and whether its other requests are answered.
 */
export async function showResets({ target }: Scene, seconds: number): Promise<Shown> {
  const json = [['content-type', 'application/json']] as const;
  const socket = connect({ port: target.port, host: '127.0.0.1', localAddress: '127.0.0.1', noDelay: true });
  let goneAfter: number | undefined;
  const began = performance.now();
  const end = (): void => {
    goneAfter ??= (performance.now() - began) / 1000;
  };
  socket.on('error', end).on('close', end);
  let tail = Buffer.alloc(0);
  let answered = 0;
  socket.on('data', (part: Buffer) => {
    tail = Buffer.concat([tail, part]);
    while (tail.length >= 9 && tail.length >= 9 + tail.readUIntBE(0, 3)) {
      const length = tail.readUIntBE(0, 3);
      const type = tail.readUInt8(3);
      if (type === TYPE.goaway) end();
      if (type === TYPE.settings && (tail.readUInt8(4) & FLAG.ack) === 0)
        socket.write(frame(TYPE.settings, 0, Buffer.alloc(0), FLAG.ack));
      if (type === TYPE.data && (tail.readUInt8(4) & FLAG.endStream) !== 0) answered += 1;
      tail = tail.subarray(9 + length);
    }
  });
  socket.write(Buffer.concat([PREFACE, settings()]));
  let stream = 1;
  let [sent, asked] = [0, 0];
  const body = Buffer.from(decisionText());
  const open = (flags: number): Buffer => headers(stream, request('POST', '/v1/decisions', json), flags);
  await until(seconds, async () => {
    if (goneAfter === undefined) {
      const parts: Buffer[] = [];
      const due = ((performance.now() - began) / 1000) * RESETS;
      for (; sent < due; stream += 2, sent += 1) parts.push(open(0), rst(stream, 8));
      if (due > asked * RESETS) {
        parts.push(open(0), frame(TYPE.data, stream, body, FLAG.endStream));
        stream += 2;
        asked += 1;
      }
      socket.write(Buffer.concat(parts));
    }
    await sleep(20);
  });
  await sleep(500);
  const fate =
    goneAfter === undefined ? 'the session stays' : `the session was cut off after ${goneAfter.toFixed(1)} s`;
  socket.removeListener('close', end).destroy();
  return {
    figure: `${sent} resets at ${RESETS}/s: ${fate}; ${answered} of its ${asked} other calls were answered`,
    defect: goneAfter !== undefined || answered < asked,
  };
}
