/**
 * One RPC as the wire sees it: its descriptor, which states the rules of its request, who may call it, and the handler.
 */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { Call } from '../domain/call.ts';
import type { Access } from '../domain/gate.ts';

/** Answers one call. Throws DomainError. */
export type Handler<I extends DescMessage, O extends DescMessage> = (
  request: MessageShape<I>,
  call: Call,
) => Promise<MessageInitShape<O>> | MessageInitShape<O>;

/** An RPC as every protocol serves it: its handler, and what must hold before it is called. */
export interface Procedure<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> extends Access {
  readonly method: DescMethodUnary<I, O>;
  /**
   * About how many bytes a response has. Stated where it holds stored data, which can be as large as the largest
   * request.
   */
  readonly sizeOf?: (response: MessageInitShape<O>) => number;
  readonly handle: Handler<I, O>;
}

/** Checks a handler against the types of its method, and hides these types from code that only mounts procedures. */
export function procedure<I extends DescMessage, O extends DescMessage>(definition: Procedure<I, O>): Procedure {
  return definition as unknown as Procedure;
}
