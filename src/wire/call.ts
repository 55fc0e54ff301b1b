/** The call of a procedure's handler, in every protocol. */
import type { DescMessage, Message, MessageInitShape } from '@bufbuild/protobuf';
import type { Call } from '../domain/call.ts';
import type { Procedure } from '../service/procedure.ts';
import { LARGE } from './http/body.ts';
import { MAX_BODY_BYTES } from './http/bounds.ts';

/**
 * Runs the handler on a request that has passed its rules. @throws what the handler throws,
 * or DomainError DEADLINE_EXCEEDED.
 */
export async function invoke(
  procedure: Procedure,
  request: Message,
  call: Call,
): Promise<MessageInitShape<DescMessage>> {
  const { place } = call;
  const { sizeOf } = procedure;
  if (sizeOf !== undefined) {
    // What is stored can be large, and its size is unknown until it has been read. So room for the largest response is
    // set aside first: an address has only as many reads at a time as its bound of unread bytes has room for; others
    // wait. The size that is found then replaces what was set aside, so that the wait behind small responses is short.
    const room = place?.reserve(MAX_BODY_BYTES);
    if (room !== undefined) await room;
    await place?.turn();
  }
  try {
    call.invoked();
    const response = await procedure.handle(request, call);
    if (sizeOf !== undefined) {
      const size = sizeOf(response);
      place?.settle(size);
      // To write it takes as long as to read it.
      if (size > LARGE) await place?.turn();
    }
    return response;
  } finally {
    // A call that failed has no such response. After the `settle` above, this does nothing.
    if (sizeOf !== undefined) place?.settle(0);
    call.answered();
  }
}
