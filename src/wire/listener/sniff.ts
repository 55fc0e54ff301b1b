/**
 * Which protocol a cleartext connection speaks, from its first bytes: HTTP/2 with prior knowledge begins with a fixed
 * preface of 24 bytes (RFC 9113, 3.4), anything else is HTTP/1.x. Decided at the first byte that differs: a whole
 * HTTP/1.0 request can be shorter than the preface.
 */
import type { Socket } from 'node:net';

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** The protocol that a connection was found to speak. */
export type Sniffed = 'http1' | 'http2';

/**
 * Reads until the protocol is certain, puts the bytes back and calls `found` once. A socket that leaves it open is
 * destroyed after `timeout` milliseconds, one that ends without a byte at once.
 */
export function sniff(socket: Socket, timeout: number, found: (protocol: Sniffed) => void): void {
  let head: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeout);
  const stop = (): void => {
    clearTimeout(timer);
    socket.off('readable', onReadable).off('close', stop).off('end', onEnd).off('error', ignore);
  };
  const decide = (protocol: Sniffed): void => {
    stop();
    if (head.length > 0) socket.unshift(head);
    found(protocol);
  };
  const onReadable = (): void => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
    const length = Math.min(head.length, PREFACE.length);
    if (head.compare(PREFACE, 0, length, 0, length) !== 0) decide('http1');
    else if (head.length >= PREFACE.length) decide('http2');
  };
  // Half a preface and then the end: the HTTP/1.1 parser says what is wrong with it.
  const onEnd = (): void => (head.length > 0 ? decide('http1') : void socket.destroy());
  const ignore = (): void => {};
  socket.on('readable', onReadable).on('close', stop).on('end', onEnd).on('error', ignore);
}
