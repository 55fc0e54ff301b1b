/** The HTTP/1.1 server behind the port. It never listens itself: sockets are handed to it. */
import { createServer, type Server } from 'node:http';
import type { Dispatch } from '../dispatch.ts';
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
export function createHttp1Server(dispatch: Dispatch, raw: RawAnswers): Server {
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
