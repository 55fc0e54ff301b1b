/** D7 and D12: answers that nobody reads, and a log that nobody reads. */
import { connect } from 'node:net';
import { headers, PREFACE, request, settings } from '../../test/support/http2-frames.ts';
import { ATTACKS } from './attacks.ts';
import { ask, decisionText } from './calls.ts';
import { type Scene, type Shown, sleep, until } from './shown.ts';

/** Seconds that unread answers are held: longer than the time after which the service gives them up. */
const HELD = 38;
/** The last of these seconds, in which another caller at the attacker's address is watched. */
const WATCHED = 5;

/**
 * D7: leaves answers of 1 MiB unread, and shows whether another caller at the attacker's own address gets decisions
 * half a minute later.
 */
export async function showUnread({ target }: Scene): Promise<Shown> {
  const attacking = ATTACKS['unread-http1']?.(target, HELD) as Promise<string>;
  await sleep((HELD - WATCHED) * 1000);
  const statuses: number[] = [];
  await until(WATCHED - 1, async () => {
    statuses.push((await ask(target.port, { body: decisionText() })).status);
    await sleep(100);
  });
  const did = await attacking;
  const good = statuses.filter((status) => status === 200).length;
  return {
    figure: `${did}; another caller of that address, ${HELD - WATCHED} s later: ${good} of ${statuses.length} decisions`,
    defect: good < statuses.length / 2,
  };
}

/** Stores a catalog whose reading gives an answer of about 1 MiB. */
export async function storeLargeCatalog(port: number, key: string): Promise<void> {
  const choices = Array.from({ length: 42 }, (_, index) => `${index}${'x'.repeat(24_000)}`);
  const body = JSON.stringify({ id: 'large', model: 'minilm-l6', choices });
  const { status, text } = await ask(port, { path: '/v1/catalogs', key, body });
  if (status !== 201) throw new Error(`the catalog was not made: ${status} ${text}`);
}

/**
 * The growth of D7: opens `count` sessions without a window, each with two reads of that catalog. Returns a function
 * that closes them.
 */
export function openUnread(port: number, key: string, count: number): () => void {
  const read = (stream: number): Buffer =>
    headers(stream, request('GET', '/v1/catalogs/large', [['authorization', `Bearer ${key}`]]));
  const bytes = Buffer.concat([PREFACE, settings({ 4: 0 }), read(1), read(3)]);
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.1' });
    socket.on('error', () => {}).resume();
    socket.write(bytes);
    return socket;
  });
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}

/** Requests, each of which writes a line to the log that nobody reads. */
const LINES = 40_000;
/** Requests per second: fewer than one address may send. */
const PACE = 5_000;
/** MiB that so many unread lines may add to the process's memory. */
const MOST_GROWTH = 64;
/** Seconds that a process that was told to end is waited for. */
const PATIENCE = 15;

/** D12: nobody reads the log. Ends the service. */
export async function showStalledLog({ target }: Scene): Promise<Shown> {
  const before = target.memory() ?? 0;
  const get = 'GET /none HTTP/1.1\r\nHost: a\r\n\r\n';
  const sockets = Array.from({ length: 8 }, () => {
    const socket = connect({ port: target.port, host: '127.0.0.1', localAddress: '127.0.0.1' });
    socket.on('error', () => {}).resume();
    return socket;
  });
  let sent = 0;
  const start = performance.now();
  await until(LINES / PACE, async () => {
    // Each connection writes its share of the requests that are due by now.
    const share = Math.floor((((performance.now() - start) / 1000) * PACE - sent) / sockets.length);
    for (const socket of sockets) if (!socket.destroyed) socket.write(get.repeat(share));
    sent += share * sockets.length;
    await sleep(20);
  });
  await sleep(1000);
  const after = target.memory() ?? 0;
  for (const socket of sockets) socket.destroy();
  const began = performance.now();
  process.kill(target.pid, 'SIGTERM');
  while (target.memory() !== undefined && performance.now() - began < PATIENCE * 1000) await sleep(50);
  const ended = target.memory() === undefined;
  const took = (performance.now() - began) / 1000;
  return {
    figure: `${sent} requests: ${before.toFixed(0)} → ${after.toFixed(0)} MiB; SIGTERM: ${ended ? `ended after ${took.toFixed(1)} s` : `still there after ${took.toFixed(0)} s`}`,
    defect: !ended || after - before > MOST_GROWTH,
  };
}
