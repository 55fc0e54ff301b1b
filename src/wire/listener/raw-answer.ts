/**
 * The answers to what never becomes a request, since Node's HTTP/1.1 parser gave it up. They have the envelope like all
 * others.
 */
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { DomainError } from '../../domain/errors.ts';
import { newId } from '../../domain/ids.ts';
import type { Logger } from '../../logger.ts';
import { envelopeBody, httpStatus } from '../http/response.ts';

/** The fault behind an error of Node's event `clientError`. */
function faultOf(error: NodeJS.ErrnoException): DomainError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return new DomainError('HEADERS_TOO_LARGE', 'the headers are larger than 16 KiB');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new DomainError('BODY_TOO_LARGE', 'the chunk extensions are larger than 16 KiB');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new DomainError('REQUEST_TIMEOUT', 'the request did not arrive in time');
    default:
      return new DomainError('MALFORMED_REQUEST', 'the request is not valid HTTP');
  }
}

/** What Node keeps on a socket: the response that is being written on it. */
type WithResponse = Duplex & { _httpMessage?: ServerResponse | null };

/** Does `work` once earlier requests have been answered; never, if the connection ends with one of them. */
function inTurn(socket: Duplex, work: () => void): void {
  const { _httpMessage: earlier } = socket as WithResponse;
  if (!socket.writable) return;
  if (earlier) earlier.once('close', () => inTurn(socket, work));
  else work();
}

/** Answers to requests on a bare socket, each of which is logged as one line, as other requests are. */
export class RawAnswers {
  readonly #logger: Logger;
  readonly #discard: (socket: Socket) => void;

  /** `discard` ends the reading of requests on a socket. */
  constructor(logger: Logger, discard: (socket: Socket) => void) {
    this.#logger = logger;
    this.#discard = discard;
  }

  /** For `clientError`: answers and closes the socket, unless a response is already under way on it. */
  readonly clientError = (error: NodeJS.ErrnoException, bare: Duplex): void => {
    const socket = bare as Socket & WithResponse;
    if (error.code === 'ECONNRESET' || !socket.writable || socket._httpMessage?.headersSent === true) {
      socket.destroy();
      return;
    }
    this.#discard(socket);
    // A request that ends in the middle of its body has an exchange, whose own line says that its caller left.
    this.#answer(socket, faultOf(error), error.code !== 'HPE_INVALID_EOF_STATE' || !socket._httpMessage);
  };

  /** For `connect`: Node hands over the bare socket. */
  readonly connect = (_request: unknown, socket: Duplex): void => {
    socket.on('error', () => {});
    // What the tunnel would carry is discarded; left unread, it would hide that the peer has left.
    this.#discard(socket as Socket);
    socket.resume();
    const fault = new DomainError('ROUTE_NOT_FOUND', 'this server is no proxy');
    inTurn(socket, () => this.#answer(socket as Socket, fault, true));
  };

  #answer(socket: Socket, fault: DomainError, log: boolean): void {
    const requestId = newId('req_');
    const status = httpStatus(fault);
    const body = envelopeBody(fault);
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nX-Request-ID: ${requestId}\r\nConnection: close\r\n\r\n${body}`,
    );
    // A peer that never reads its answer, or goes on sending, must not keep the socket.
    const timer = setTimeout(() => socket.destroy(), 1000).unref();
    socket.once('close', () => clearTimeout(timer));
    if (!log) return;
    this.#logger.info({ requestId, protocol: 'rest', route: 'unmatched', status, reason: fault.reason }, 'request');
  }
}
