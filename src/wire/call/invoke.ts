/** Calls a procedure's handler: the same for every protocol. */
import type { DescMessage, Message, MessageInitShape } from '@bufbuild/protobuf';
import type { Procedure } from '../../service/procedure.ts';
import { MAX_BODY_BYTES } from '../http/bounds.ts';
import type { Exchange } from '../http/exchange.ts';

/**
 * Runs the handler on a request that its rules have passed. @throws what the handler throws,
 * or DomainError DEADLINE_EXCEEDED.
 */
export async function invoke(
  procedure: Procedure,
  request: Message,
  exchange: Exchange,
): Promise<MessageInitShape<DescMessage>> {
  const { place } = exchange;
  const { sizeOf } = procedure;
  if (sizeOf !== undefined) {
    // What is stored can be large, and nobody knows before it has been read: of an address as many are read at a time
    // as it may have waiting if all are as large as can be, the others after them. What is set aside then shrinks to
    // what was found, so that small ones go through in short turns.
    const room = place?.reserve(MAX_BODY_BYTES);
    if (room !== undefined) await room;
  }
  try {
    exchange.invoked();
    const response = await procedure.handle(request, exchange);
    if (sizeOf !== undefined) place?.settle(sizeOf(response));
    return response;
  } finally {
    // Of one that failed nothing waits.
    if (sizeOf !== undefined) place?.settle(0);
    exchange.answered();
  }
}
