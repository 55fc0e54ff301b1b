/** Calls a procedure's handler: the same for every protocol. */
import type { DescMessage, Message, MessageInitShape } from '@bufbuild/protobuf';
import { DomainError } from '../../domain/errors.ts';
import type { Procedure } from '../../service/procedure.ts';
import type { Exchange } from '../exchange.ts';
import { MAX_BODY_BYTES } from '../rest/body.ts';

/** Runs the handler on a request that its rules have passed. @throws what the handler throws, or DomainError DEADLINE_EXCEEDED. */
export async function invoke(
  procedure: Procedure,
  request: Message,
  exchange: Exchange,
): Promise<MessageInitShape<DescMessage>> {
  const now = performance.now();
  if (now >= exchange.deadline) {
    throw new DomainError('DEADLINE_EXCEEDED', 'the deadline passed before the request was read', { retryAfter: 1 });
  }
  exchange.invokedAt = now;
  if (procedure.reads === 'catalog') exchange.place?.reserve(MAX_BODY_BYTES);
  try {
    return await procedure.handle(request, exchange);
  } finally {
    exchange.worked();
  }
}
