/** The HTTP/1.1 server behind the port. It never listens itself: sockets are handed to it. */
import { chmodSync, lstatSync, readFileSync, statSync, unlinkSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createNetServer, type Server as NetServer } from 'node:net';
import { createSecureContext } from 'node:tls';
import {
  CHECK_INTERVAL,
  HEADERS_TIMEOUT,
  KEEP_ALIVE_TIMEOUT,
  MAX_HEADER_BYTES,
  REQUEST_TIMEOUT,
} from '../http/bounds.ts';
import type { RawAnswers } from './raw-answer.ts';

/** Options that the cleartext and the TLS server share. */
export const HTTP1_OPTIONS = {
  maxHeaderSize: MAX_HEADER_BYTES,
  headersTimeout: HEADERS_TIMEOUT,
  requestTimeout: REQUEST_TIMEOUT,
  keepAliveTimeout: KEEP_ALIVE_TIMEOUT,
  connectionsCheckingInterval: CHECK_INTERVAL,
  // Node's own answer to a missing Host has no body, so the dispatcher checks that.
  requireHostHeader: false,
};

/** A server that answers requests through `dispatch`, and through `raw` what never becomes a request. */
export function createHttp1Server(dispatch: RequestListener, raw: RawAnswers): Server {
  const server = createServer(HTTP1_OPTIONS, dispatch);
  server.on('clientError', raw.clientError);
  server.on('connect', raw.connect);
  // Without listeners Node sends 417 without a body, and 100 to requests that are then refused; so dispatch does both.
  server.on('checkContinue', dispatch);
  server.on('checkExpectation', dispatch);
  // Node watches the timeouts only once the server believes that it listens.
  server.emit('listening');
  return server;
}

/** Where a server listens: a port of an address, or the path of a Unix socket, for which `host` does not count. */
export interface Place {
  readonly port: number | string;
  readonly host: string;
  /** Connections that wait for the system to accept them. */
  readonly backlog?: number;
}

/** All addresses of a machine, IPv6 and IPv4, and those of one that has no IPv6. */
const [ANY, ANY_IPV4] = ['::', '0.0.0.0'];
/** What the system says where IPv6 is off. */
const NO_IPV6 = ['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL'];
/** The mode of a Unix socket, whatever the umask: its owner and its group may connect. */
const SOCKET_MODE = 0o660;

/**
 * Resolves with the place once connections are accepted: port 0 has become a free one, and `::`, where IPv6 is off,
 * `0.0.0.0`. The file of a Unix socket on which nobody listens any more is replaced. @throws the system's error if the
 * place is not available.
 */
export async function listen(server: NetServer, place: Place): Promise<Place> {
  try {
    return await open(server, place);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (place.host === ANY && NO_IPV6.includes(code)) return await open(server, { ...place, host: ANY_IPV4 });
    if (typeof place.port !== 'string' || code !== 'EADDRINUSE' || !(await isStale(place.port))) throw error;
    unlinkSync(place.port);
    return await open(server, place);
  }
}

/** Takes a place and gives it back. @throws the system's error if it is not available. */
export async function tryPlace(place: Place): Promise<void> {
  const server = createNetServer();
  await listen(server, place);
  await new Promise((resolve) => server.close(resolve));
}

function open(server: NetServer, { port, host, backlog = 511 }: Place): Promise<Place> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(typeof port === 'string' ? { path: port, backlog } : { port, host, backlog }, () => {
      server.off('error', reject);
      if (typeof port === 'string') chmodSync(port, SOCKET_MODE);
      resolve({ host, port: typeof port === 'string' ? port : (server.address() as AddressInfo).port });
    });
  });
}

/** Whether a path is a Unix socket on which nobody listens. */
function isStale(path: string): Promise<boolean> {
  if (!lstatSync(path).isSocket()) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = connect(path, () => resolve(false));
    socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED'));
    socket.on('connect', () => socket.destroy());
  });
}

// The certificate and key that settings name, read and checked.

/** The certificate and key of the files, as PEM texts; undefined if neither is set. `problems` says what is wrong. */
export function readTlsFiles(
  cert: string | undefined,
  key: string | undefined,
): {
  readonly value: { readonly cert: string; readonly key: string } | undefined;
  readonly problems: readonly string[];
} {
  if (cert === undefined && key === undefined) return { value: undefined, problems: [] };
  if (cert === undefined || key === undefined)
    return { value: undefined, problems: ['TLS_CERT and TLS_KEY belong together'] };
  const problems: string[] = [];
  const read = (name: string, file: string): string => {
    try {
      // A pipe would stop the process for ever, at the latest when the files are read again.
      if (!statSync(file).isFile()) {
        problems.push(`${name}: '${file}' is not a regular file`);
        return '';
      }
      const text = readFileSync(file, 'utf8');
      if (text.trim() === '') problems.push(`${name}: '${file}' is empty`);
      return text.trim();
    } catch (error) {
      problems.push(`${name}: '${file}' cannot be read (${(error as NodeJS.ErrnoException).code})`);
      return '';
    }
  };
  const tls = { cert: read('TLS_CERT', cert), key: read('TLS_KEY', key) };
  if (tls.cert === '' || tls.key === '') return { value: tls, problems };
  try {
    createSecureContext(tls);
  } catch (error) {
    problems.push(`TLS_CERT and TLS_KEY: not a certificate and its unencrypted key, as PEM (${error})`);
  }
  return { value: tls, problems };
}
