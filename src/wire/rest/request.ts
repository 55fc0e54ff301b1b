/** A request of a route: its body as a message. */
import type { Message } from '@bufbuild/protobuf';
import type { BodyLimits } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import { bodyTurn } from '../http/body-turns.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpRequest } from '../http/messages.ts';
import { readBody } from './body.ts';
import type { Route } from './routes.ts';

/** Reads the request, after the gate. `variables`: the fields that its path gave. @throws DomainError. */
export async function readRequest(
  exchange: Exchange,
  { hasBody, read }: Route,
  variables: ReadonlyMap<string, string>,
  bodies: BodyLimits,
): Promise<Message> {
  if (!hasBody) return read(undefined, variables);
  assertJsonContent(exchange.request);
  const body = await readBody(exchange.request, bodies.meter(exchange.caller));
  const turn = bodyTurn(body.length);
  if (turn !== undefined) await turn;
  return read(body, variables);
}

/**
 * @throws DomainError UNSUPPORTED_MEDIA_TYPE or UNSUPPORTED_ENCODING if the headers do not announce
 * plain JSON in UTF-8.
 */
function assertJsonContent(request: HttpRequest): void {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new DomainError('UNSUPPORTED_ENCODING', 'request bodies must not be compressed');
  }
  const type = request.headers['content-type'];
  if (type === 'application/json') return;
  const [media = '', ...parameters] = (type ?? '').split(';');
  const charset = parameters
    .map((parameter) => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/i.exec(parameter)?.[1])
    .find((value) => value !== undefined);
  if (
    media.trim().toLowerCase() !== 'application/json' ||
    (charset !== undefined && charset.toLowerCase() !== 'utf-8')
  ) {
    throw new DomainError('UNSUPPORTED_MEDIA_TYPE', 'send the body as Content-Type: application/json, in UTF-8');
  }
}
