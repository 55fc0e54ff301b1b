/** A request that has begun and whose response has not left: the place that it takes on its connection and in its address's account. */
import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Exchange, Place } from '../exchange.ts';
import { type HttpRequest, isHttp2 } from '../http.ts';
import type { Account } from './accounts.ts';
import type { Connection } from './connections.ts';

/** What judges a request beyond its beginning, see `Place`. */
export interface RequestBounds {
  reserve(request: OpenRequest, bytes: number): Promise<void> | undefined;
  settle(request: OpenRequest, bytes: number): void;
  meter(request: OpenRequest): void;
}

export class OpenRequest implements Place {
  readonly exchange: Exchange;
  readonly connection: Connection;
  readonly account: Account;
  /** When its response was seen to be written. */
  answeredAt: number | undefined;
  /** Bytes that are set aside for its response until it is written, and of these what is set aside until its size is known. */
  reserved = 0;
  unsettled = 0;
  /** Whether it is a stream that is meant to stay open. */
  watching = false;
  /** Ends the exchange, unless its response did. */
  readonly end: () => void;
  readonly #bounds: RequestBounds;

  constructor(options: {
    readonly exchange: Exchange;
    readonly connection: Connection;
    readonly account: Account;
    readonly end: () => void;
    readonly bounds: RequestBounds;
  }) {
    this.exchange = options.exchange;
    this.connection = options.connection;
    this.account = options.account;
    this.end = options.end;
    this.#bounds = options.bounds;
  }

  reserve(bytes: number): Promise<void> | undefined {
    return this.#bounds.reserve(this, bytes);
  }

  settle(bytes: number): void {
    this.#bounds.settle(this, bytes);
  }

  meter(): void {
    this.#bounds.meter(this);
  }

  /** Whether the request is still arriving. */
  get arriving(): boolean {
    return !this.exchange.request.complete;
  }

  /** Bytes of its response that this process still holds. */
  get waiting(): number {
    return this.exchange.response.writableLength;
  }
}

/** The stream of an HTTP/2 request. */
export function streamOf(request: HttpRequest): ServerHttp2Stream | undefined {
  return isHttp2(request) ? (request as unknown as { stream: ServerHttp2Stream }).stream : undefined;
}

/** Ends a request with all that it holds: its stream, or the connection where it has no stream of its own. */
export function giveUp({ exchange }: OpenRequest, why: NonNullable<Exchange['givenUp']>): void {
  exchange.givenUp = why;
  const stream = streamOf(exchange.request);
  if (stream === undefined) exchange.request.socket.destroy();
  else stream.close(constants.NGHTTP2_CANCEL);
}
