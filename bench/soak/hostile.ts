/** Hostile callers, one of each kind in turn. */
import { connect } from 'node:net';
import { bodyOf } from '../load/requests.ts';

const decision = (body: unknown, headers = ''): string => {
  const json = typeof body === 'string' ? body : JSON.stringify(body);
  return `POST /v1/decisions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}Content-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}`;
};
const good = bodyOf(58, 8);

/** The bytes that each kind writes. */
const ATTACKS: readonly string[] = [
  decision('{"model": "minilm-l6", '),
  decision({ ...good, choices: Array.from({ length: 301 }, (_, i) => `c${i}`) }),
  decision({ ...good, input: 'word '.repeat(150_000) }),
  decision({ ...good, extra: { __proto__: 1 } }),
  decision({ ...good, model: 'x'.repeat(5000) }),
  decision(good, 'Authorization: Bearer ump_live_nonsense\r\n'),
  decision(good, 'Content-Encoding: gzip\r\n'),
  decision('['.repeat(100_000)),
  `POST /v1/decisions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{"model"`,
  `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
  `GET /v1/models HTTP/1.1\r\nHost: x\r\n${'X-Y: z\r\n'.repeat(3000)}\r\n`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnot a frame at all, not by far',
  '\x16\x03\x01 this is not TLS either',
  'DELETE /v1/decisions HTTP/1.1\r\nHost: x\r\n\r\n',
  decision({ ...good, input: 'one that leaves at once' }),
];

/** Makes one attack and closes the connection after two seconds, the last kind after 5 ms. */
export function attack(port: number, turn: number): void {
  const kind = turn % ATTACKS.length;
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.resume();
  socket.write(ATTACKS[kind] ?? '');
  setTimeout(() => socket.destroy(), kind === ATTACKS.length - 1 ? 5 : 2000);
}
