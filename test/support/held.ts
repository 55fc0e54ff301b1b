/** What a service's port holds, as a test makes it, and waits for it. */
import { connect, type Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import type { ExecutionContext } from 'ava';
import type { HoldingState } from '../../src/wire/holdings/holdings.ts';
import type { TestService } from './service.ts';

/** Waits until what the port holds is as wanted; throws with what it is instead. */
export async function untilHeld(
  { app }: TestService,
  wanted: (state: HoldingState) => boolean,
  timeout = 15_000,
): Promise<HoldingState> {
  const deadline = performance.now() + timeout;
  for (;;) {
    const state = app.holdings();
    if (wanted(state)) return state;
    if (performance.now() > deadline) throw new Error(`the port holds ${JSON.stringify(state)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * Connections that send these bytes and nothing more, `each` of them from each of so many addresses; with `tls` as
 * HTTP/2 behind a handshake.
 */
export function hold(
  t: ExecutionContext,
  port: number,
  addresses: number,
  each: number,
  bytes: Buffer,
  tls = false,
): Socket[] {
  return Array.from({ length: addresses * each }, (_, index) => {
    const bare = connect({ port, host: '127.0.0.1', localAddress: `127.0.1.${1 + Math.floor(index / each)}` });
    bare.on('error', () => {});
    const socket = tls ? connectSecure({ socket: bare, rejectUnauthorized: false, ALPNProtocols: ['h2'] }) : bare;
    socket.on('error', () => {}).resume();
    socket.write(bytes);
    t.teardown(() => bare.destroy());
    return socket;
  });
}
