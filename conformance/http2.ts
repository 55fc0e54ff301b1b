/** Sends requests by HTTP/2 over one session: with TLS by ALPN, in cleartext with prior knowledge. */
import type { OutgoingHttpHeaders } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import type { Answer } from './answer.ts';
import { createGatherer, headersOf, methodOf, pathOf, type Send, Silence, type Target, tlsOf } from './call.ts';
import { BrokenPromise } from './outcome.ts';

/**
 * A function that sends requests, and one that closes its session. Rejects with BrokenPromise where HTTP/2 is not
 * spoken.
 */
export function createHttp2(target: Target): { readonly send: Send; close(): void } {
  const { url, timeout } = target;
  let session: ClientHttp2Session | undefined;
  // Whether the peer has shown that it speaks HTTP/2.
  let spoken = false;

  const open = (): ClientHttp2Session => {
    if (session === undefined || session.closed || session.destroyed) {
      session = connect(url.origin, tlsOf(target));
      session.on('error', () => {});
      session.once('remoteSettings', () => {
        spoken = true;
      });
    }
    return session;
  };

  const send: Send = (call) =>
    new Promise((resolve, reject) => {
      const opened = open();
      const failed = (error: Error): void => reject(spoken ? error : noHttp2(url, error));
      if (opened.connecting) opened.once('error', failed);
      const line = { ':method': methodOf(call), ':path': pathOf(url, call) };
      const stream = opened.request({ ...line, ...headersOf(call) });
      const gathered = createGatherer((error) => stream.destroy(error));
      let headers: OutgoingHttpHeaders = {};
      let trailers: OutgoingHttpHeaders | undefined;
      const timer = setTimeout(() => stream.destroy(new Silence(timeout)), timeout);
      stream.on('response', (received) => {
        headers = received;
      });
      stream.on('trailers', (received) => {
        trailers = received;
      });
      stream.on('data', gathered.add);
      stream.on('error', failed);
      stream.on('close', () => {
        clearTimeout(timer);
        opened.off('error', failed);
        failed(new Error('the stream was closed without an answer'));
      });
      stream.on('end', () =>
        resolve({
          status: Number(headers[':status'] ?? 0),
          headers: headers as Answer['headers'],
          trailers: (trailers ?? headers) as Answer['trailers'],
          body: gathered.bytes(),
        }),
      );
      stream.end(call.body);
    });

  return { send, close: () => session?.close() };
}

function noHttp2(url: URL, error: Error): BrokenPromise {
  const hint =
    url.protocol === 'https:'
      ? 'the TLS end, perhaps a proxy, does not offer h2 by ALPN'
      : 'what listens there, perhaps a proxy, does not speak HTTP/2 in cleartext';
  return new BrokenPromise(`no HTTP/2 at ${url.origin} (${error.message}): ${hint}; --grpc names another address`);
}
