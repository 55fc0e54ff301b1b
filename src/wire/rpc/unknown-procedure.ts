/** Answers for RPCs that do not exist, in the protocol that they were called by: UNIMPLEMENTED, and never an HTTP 5xx. */
import { DomainError } from '../../domain/errors.ts';
import type { Exchange } from '../exchange.ts';
import { visibleFault } from '../faults.ts';
import { toConnectError } from './connect-error.ts';
import { errorToJsonBytes, setTrailerStatus } from './connect-private.ts';
import { unescapeMessage } from './protocol-faults.ts';

/** `/package.Service/Method`: no REST resource has a dot in its first segment and exactly one more. */
const RPC_PATH = /^\/[\w]+(\.[\w]+)+\/[\w]+$/;

/** Answers the request if it is an RPC by its content type or its path, and says whether it was. */
export function answerUnknownProcedure(exchange: Exchange, path: string): boolean {
  const { request, response } = exchange;
  const type = request.headers['content-type'] ?? '';
  const grpc = type.startsWith('application/grpc') && !type.startsWith('application/grpc-web');
  if (!grpc && !(path.includes('.') && request.method === 'POST' && RPC_PATH.test(path))) return false;
  exchange.protocol = grpc ? 'grpc' : 'connect';
  const error = toConnectError(
    visibleFault(new DomainError('UNIMPLEMENTED', 'this server has no such procedure'), exchange),
  );
  request.resume();
  if (grpc) {
    const status = Object.fromEntries(unescapeMessage(setTrailerStatus(new Headers(), error)));
    response.writeHead(200, { 'content-type': 'application/grpc', 'x-request-id': exchange.requestId, ...status });
    response.end();
    return true;
  }
  const body = errorToJsonBytes(error, undefined);
  response.writeHead(404, {
    'content-type': 'application/json',
    'content-length': body.byteLength,
    'x-request-id': exchange.requestId,
  });
  response.end(body);
  return true;
}
