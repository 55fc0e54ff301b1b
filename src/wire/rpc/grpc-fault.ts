/** Failed gRPC calls that are answered without Connect, and without reading them: with the trailers alone, in one frame. */
import type { DomainError } from '../../domain/errors.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpRequest } from '../http/messages.ts';
import { toConnectError } from './connect-error.ts';
import { setTrailerStatus } from './connect-private.ts';
import { unescapeMessage } from './protocol-faults.ts';

type StatusFields = readonly (readonly [name: string, value: string])[];

/** The status of faults that came before, by what they say: in a flood making it would cost more than sending it. */
const known = new Map<string, StatusFields>();
const mostKnown = 64;

/** Whether a request is a gRPC call by its content type; gRPC-Web is none. */
export function isGrpc({ headers }: HttpRequest): boolean {
  const type = headers['content-type'] ?? '';
  return type.startsWith('application/grpc') && !type.startsWith('application/grpc-web');
}

/**
 * Answers the call with the fault; what is left of its request is thrown away. The frames that came with the call's first are taken in before: a stream
 * that is over makes them errors of the session, and a session with many of these is ended.
 */
export function answerGrpcFault({ request, response, requestId }: Exchange, fault: DomainError): void {
  request.resume();
  setImmediate(() => {
    // Not `writeHead`: it would send the headers at once, and the end of the stream in a frame of its own.
    for (const [name, value] of statusOf(fault)) response.setHeader(name, value);
    response.setHeader('x-request-id', requestId);
    response.end();
  });
}

function statusOf(fault: DomainError): StatusFields {
  const name = `${fault.reason} ${fault.retryAfter} ${fault.param} ${fault.message}`;
  const found = known.get(name);
  if (found !== undefined) return found;
  const headers = new Headers({ 'content-type': 'application/grpc' });
  const status = [...unescapeMessage(setTrailerStatus(headers, toConnectError(fault)))];
  if (known.size < mostKnown) known.set(name, status);
  return status;
}
