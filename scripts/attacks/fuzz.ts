/**
 * Fuzzes the port with mutated bytes: `node scripts/attacks/fuzz.ts --protocol http1|http2 --seconds N --seed N`. Each
 * round has a seed of its own, which is printed if something is wrong. The process must live, answer others, answer
 * with no 5xx but 503, and release what it held.
 */
import { connect } from 'node:net';
import { parseArgs } from 'node:util';
import { OPENINGS, SEQUELS } from '../../test/support/http2-crash-cases.ts';
import { frame, PREFACE, settings } from '../../test/support/http2-frames.ts';
import { ROOT, startTarget } from './target.ts';

const { values } = parseArgs({
  options: {
    protocol: { type: 'string', default: 'http1' },
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    checkout: { type: 'string', default: ROOT },
  },
});

/** Connections at a time. */
const PARALLEL = 24;
/** Milliseconds that a connection is kept after its bytes were sent. */
const KEPT = 25;

type Random = (below: number) => number;

/** Mulberry32, a small generator that gives the same numbers everywhere. */
function seeded(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const pick = <T>(random: Random, list: readonly T[]): T => list[random(list.length)] as T;

const BODY = '{"model":"minilm-l6","input":"a","instruction":"b","choices":["c","d"]}';
/** The valid requests that are mutated. */
const HEADS = [
  'GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /health/ready HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
  `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`,
  `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
  'GET /v1/models HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n',
  'CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n',
  'POST /umpire.v1.ModelService/ListModels HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}',
].map((text) => Buffer.from(text));
/** What mutations insert: texts that mean something to a parser of HTTP. */
const TOKENS = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  ':',
  ';',
  'HTTP/1.1',
  'HTTP/9.9',
  'Transfer-Encoding: chunked\r\n',
  'Content-Length: 5\r\n',
  'Content-Length: -1\r\n',
  'Expect: 100-continue\r\n',
  'Upgrade: h2c\r\nConnection: upgrade\r\n',
  '0\r\n\r\n',
  'ffffffffffffffff',
  'Host: b\r\n',
  'Trailer: x\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'x'.repeat(17_000),
  '\u00ff\u00fe',
].map((text) => Buffer.from(text, 'latin1'));

/** Changes bytes in one to eight places. */
function mutate(random: Random, bytes: Buffer, tokens: readonly Buffer[]): Buffer {
  let changed = bytes;
  for (let left = 1 + random(8); left > 0; left -= 1) {
    const at = random(changed.length + 1);
    const to = Math.min(changed.length, at + random(16));
    const [before, middle, after] = [changed.subarray(0, at), changed.subarray(at, to), changed.subarray(to)];
    const parts = pick(random, [
      () => [before, after],
      () => [before, middle, middle, after],
      () => [before, pick(random, tokens), after],
      () => [before, pick(random, tokens), middle, after],
      () => [before, Buffer.from(middle.map((byte) => byte ^ (1 << random(8)))), after],
      () => [before, Buffer.from(middle.map(() => random(256))), after],
      () => [before],
    ])();
    changed = Buffer.concat(parts);
  }
  return changed;
}

function http1(random: Random): Buffer {
  const requests = Array.from({ length: 1 + random(3) }, () => pick(random, HEADS));
  return mutate(random, Buffer.concat(requests), TOKENS);
}

const FRAMES = [...Object.values(OPENINGS), ...Object.values(SEQUELS)];

function http2(random: Random): Buffer {
  const parts: Buffer[] = [];
  for (let left = 1 + random(8); left > 0; left -= 1) {
    const one = Buffer.from(pick(random, FRAMES));
    // Changes the stream (the last four bytes of the frame's header), or the flags (its fifth byte).
    if (one.length >= 9 && random(2) === 0) one.writeUInt32BE(random(12), 5);
    if (one.length >= 9 && random(4) === 0) one.writeUInt8(random(256), 4);
    if (random(6) === 0) parts.push(frame(random(12), random(8), Buffer.alloc(random(64), random(256)), random(256)));
    parts.push(random(3) === 0 ? mutate(random, one, FRAMES) : one);
  }
  const values = random(3) === 0 ? { [1 + random(6)]: random(2) === 0 ? random(100) : random(0x7fffffff) } : {};
  return Buffer.concat([PREFACE, random(10) === 0 ? Buffer.alloc(0) : settings(values), ...parts]);
}

const make = { http1, http2 }[values.protocol];
if (make === undefined) {
  console.error('--protocol is http1 or http2');
  process.exit(2);
}

const target = await startTarget(values.checkout, {
  UMPIRE_RATE_ANONYMOUS: 'off',
  UMPIRE_REQUEST_RATE: 'off',
  LOG_LEVEL: 'info',
});
const first = Number(values.seed);
console.log(`${values.protocol}, ${values.seconds} s, seed ${first}; ${target.memory()?.toFixed(0)} MiB`);

const wrong: string[] = [];
let seed = first;
const ends = performance.now() + Number(values.seconds) * 1000;

/** Sends the bytes of one seed, in one to three writes, and checks the statuses of the answers. */
async function round(own: number): Promise<void> {
  const random = seeded(own);
  const bytes = (make as typeof http1)(random);
  const cuts = Array.from({ length: random(3) }, () => random(bytes.length + 1)).toSorted((a, b) => a - b);
  const socket = connect({ port: target.port, host: '127.0.0.1', noDelay: true });
  let text = '';
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    if (!socket.destroyed) socket.write(bytes.subarray(from, to));
    from = to;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, KEPT))]);
  socket.destroy();
  for (const [, status] of text.matchAll(/HTTP\/1\.1 (5\d\d) /g))
    if (status !== '503') wrong.push(`seed ${own}: status ${status}`);
}

const samples: number[] = [];
let slowest = 0;
const look = setInterval(async () => {
  samples.push(target.memory() ?? 0);
  const began = performance.now();
  const alive = await fetch(`http://127.0.0.1:${target.port}/health/live`).then(
    ({ status }) => status,
    ({ cause }: Error) => `${cause}`,
  );
  slowest = Math.max(slowest, performance.now() - began);
  if (alive !== 200) wrong.push(`about seed ${seed}: /health/live: ${alive}`);
}, 1000);

await Promise.all(
  Array.from({ length: PARALLEL }, async () => {
    while (performance.now() < ends && target.status === null && wrong.length < 10) await round(seed++);
  }),
);
clearInterval(look);
if (target.status !== null)
  wrong.push(`the service ended with ${target.status} about seed ${seed - PARALLEL} to ${seed}`);
// The service gives up answers that nobody reads and requests that never end within 30 s.
await new Promise((resolve) => setTimeout(resolve, 36_000));
for (const name of ['umpire_requests_open', 'umpire_watches', 'umpire_unread_bytes', 'umpire_connections']) {
  const held = await target.metric(name);
  // The connections of /health/live and /metrics may still be kept.
  if (held > (name === 'umpire_connections' ? 2 : 0)) wrong.push(`${name} is ${held} at the end`);
}
const errors = target
  .log()
  .split('\n')
  .filter((line) => /"level":"(error|fatal)"/.test(line));
if (errors.length > 0) wrong.push(`${errors.length} lines of level error, the first: ${errors[0]}`);
const third = Math.ceil(samples.length / 3);
const mean = (list: readonly number[]): string => (list.reduce((sum, each) => sum + each, 0) / list.length).toFixed(0);
console.log(`${seed - first} cases, up to seed ${seed - 1}; slowest /health/live ${slowest.toFixed(0)} ms`);
console.log(
  `memory, MiB: ${mean(samples.slice(0, third))} in the first third, ${mean(samples.slice(-third))} in the last, ${target.memory()?.toFixed(0)} at the end`,
);
for (const line of wrong) console.log(`WRONG ${line}`);
await target.stop();
process.exitCode = wrong.length > 0 ? 1 : 0;
