/** Answers for RPCs that do not exist, in the protocol that they were called by: UNIMPLEMENTED, and never an HTTP 5xx. */
import { DomainError } from '../../domain/errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { toConnectError } from './connect-error.ts';
import { errorToJsonBytes } from './connect-private.ts';
import { answerGrpcFault, isGrpc } from './grpc-fault.ts';

/** `/package.Service/Method`: no REST resource has a dot in its first segment and exactly one more. */
const RPC_PATH = /^\/[\w]+(\.[\w]+)+\/[\w]+$/;

/** Answers the request if it is an RPC by its content type or its path, and says whether it was. */
export function answerUnknownProcedure(exchange: Exchange, path: string): boolean {
  const { request, response } = exchange;
  const grpc = isGrpc(request);
  if (!grpc && !(path.includes('.') && request.method === 'POST' && RPC_PATH.test(path))) return false;
  exchange.received({ protocol: grpc ? 'grpc' : 'connect' });
  const fault = exchange.failed(new DomainError('UNIMPLEMENTED', 'this server has no such procedure'));
  if (grpc) {
    answerGrpcFault(exchange, fault);
    return true;
  }
  request.resume();
  const body = errorToJsonBytes(toConnectError(fault), undefined);
  response.writeHead(404, {
    'content-type': 'application/json',
    'content-length': body.byteLength,
    'x-request-id': exchange.requestId,
  });
  response.end(body);
  return true;
}
