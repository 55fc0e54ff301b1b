/** What a model server over HTTP may do instead of answering. */
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';

/** A response: a status, a body and headers. A text is sent as it is, anything else as JSON. */
export interface Reply {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A fault of one response. */
export type Fault =
  /** Another response. */
  | { readonly kind: 'reply'; readonly reply: Reply }
  /** The connection ends without a response. */
  | { readonly kind: 'reset' }
  /** The connection ends in the middle of the body. */
  | { readonly kind: 'cut' }
  /** A body that never ends, as fast as it is read. */
  | { readonly kind: 'endless' }
  /** A byte of the body now and then, for ever. */
  | { readonly kind: 'trickle' }
  /** Something that is not HTTP. */
  | { readonly kind: 'babble' }
  /** The right response with more headers than anybody reads. */
  | { readonly kind: 'headers' }
  /** The right response, compressed although nobody asked for that. */
  | { readonly kind: 'compressed' };

const CHUNK = 65_536;
const TRICKLE_PAUSE = 20;

/** Sends a reply. */
export function send(response: ServerResponse, { status, body, headers = {} }: Reply): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

/**
 * Does what a fault says; `right` is the response that would have been sent. `sent` hears how many bytes of a body that
 * does not end were handed over. Returns when the response has ended or its connection is gone.
 */
export async function misbehave(
  response: ServerResponse,
  fault: Fault,
  right: Reply,
  sent: (bytes: number) => void,
): Promise<void> {
  const text = JSON.stringify(right.body);
  const head = { 'content-type': 'application/json' };
  switch (fault.kind) {
    case 'reply':
      send(response, fault.reply);
      return;
    case 'reset':
      response.destroy();
      return;
    case 'cut':
      response.writeHead(200, { ...head, 'content-length': text.length + 100 });
      response.write(text.slice(0, text.length / 2), () => response.destroy());
      return;
    case 'babble':
      response.socket?.end('SSH-2.0-OpenSSH_9.2\r\n');
      return;
    case 'headers':
      send(response, { ...right, headers: { 'x-long': 'a'.repeat(1_000_000) } });
      return;
    case 'compressed': {
      const body = gzipSync(text);
      response.writeHead(200, { ...head, 'content-encoding': 'gzip', 'content-length': body.length });
      response.end(body);
      return;
    }
    case 'endless':
    case 'trickle':
      response.writeHead(200, head);
      await pour(
        response,
        fault.kind === 'endless' ? { size: CHUNK, pause: 0 } : { size: 1, pause: TRICKLE_PAUSE },
        sent,
      );
  }
}

/** Writes white space until the connection is gone. */
async function pour(
  response: ServerResponse,
  { size, pause }: { readonly size: number; readonly pause: number },
  sent: (bytes: number) => void,
): Promise<void> {
  const piece = ' '.repeat(size);
  while (!response.destroyed) {
    const more = response.write(piece);
    sent(size);
    await new Promise<void>((resolve) => {
      const done = (): void => {
        response.off('drain', done).off('close', done);
        resolve();
      };
      response.once('close', done);
      if (more) setTimeout(done, pause);
      else response.once('drain', done);
    });
  }
}
