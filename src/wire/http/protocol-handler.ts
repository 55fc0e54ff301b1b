/** What the dispatcher knows of a protocol. */
import type { DomainError } from '../../domain/errors.ts';
import type { Exchange } from './exchange.ts';

/** Answers the requests of a protocol. Each is received, admitted by the gate, read, invoked and answered. */
export interface ProtocolHandler {
  /** Answers the request. Never rejects. */
  handle(exchange: Exchange, path: string): Promise<void>;
  /** Answers a request that is refused before it is received. `closing`: its connection takes no more. */
  refuse(exchange: Exchange, fault: DomainError, closing: boolean): void;
}
