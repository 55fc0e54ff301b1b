/**
 * A connection, and an open request on it, which has begun and whose response has not left: the place that it takes on
 * the connection and in its address's account.
 */
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Place } from '../../domain/call.ts';
import type { Exchange, ExchangeRecord } from '../http/exchange.ts';
import { type HttpRequest, isHttp2 } from '../http/messages.ts';
import { A_SHARE, type Line, takeTurn } from '../http/turns.ts';
import type { Account } from './accounts.ts';

/** Milliseconds for which an address counts as one of keyed callers after a request with a valid key. */
const KEYED_TIME = 60_000;

/** One connection, from its acceptance to its end. */
export interface Connection {
  /** The socket of the TCP connection; with TLS, requests come on another one. */
  readonly socket: Socket;
  /** Undefined for the connection of a trusted proxy. */
  readonly account: Account | undefined;
  /**
   * Whose place it takes: its address's, or that of the request which a trusted proxy's connection carries. A trusted
   * proxy's connection without a request takes that of all such proxies.
   */
  holder: Account;
  /** When it became idle. */
  idleSince: number;
  readonly requests: Set<OpenRequest>;
  /** Undefined until it is known to speak HTTP/2. */
  session: ServerHttp2Session | undefined;
  /** How many bytes had left when a look last found progress, and when that was. */
  moved: number;
  movedAt: number;
  /** Whether what still arrives on it is no longer taken for requests. */
  ending: boolean;
  /** In which its requests wait for a turn of the event loop: that of its account, or its own. */
  readonly line: Line;
  /** The turn of the event loop in which it last began a stream, and how many it has begun in that. */
  turn: number;
  streams: number;
}

/** What bounds a request after it has begun; see `Place`. */
export interface RequestBounds {
  reserve(request: OpenRequest, bytes: number): Promise<void> | undefined;
  settle(request: OpenRequest, bytes: number): void;
  meter(request: OpenRequest): void;
}

/** A request from its first header until its response has left, counted for its connection and its address. */
export class OpenRequest implements Place {
  readonly exchange: Exchange;
  readonly connection: Connection;
  readonly account: Account;
  /** When a look first found its response written. */
  answeredAt: number | undefined;
  /** Bytes that are set aside for its response until it is written, and whether its size is not known yet. */
  reserved = 0;
  unsettled = false;
  /** If its response is a stream that is meant to stay open: ends it in order, which is due at `until`. */
  watch: { readonly end: () => void; readonly until: number } | undefined;
  /** Ends the exchange, unless its response has done so. */
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

  turn(requests = A_SHARE): Promise<void> {
    return new Promise((resolve) => {
      takeTurn(this.account.line, () => {
        resolve();
        return { requests, more: false };
      });
    });
  }

  keyed(): void {
    this.account.keyedUntil = performance.now() + KEYED_TIME;
  }

  /** Whether the request is still arriving. Over HTTP/2, one without a body has arrived with its headers. */
  get arriving(): boolean {
    const { request } = this.exchange;
    return !request.complete && streamOf(request)?.endAfterHeaders !== true;
  }

  /** Whether its response is made and waits for those of requests before it, over HTTP/1.1. */
  get behind(): boolean {
    const { request, response } = this.exchange;
    return response.writableEnded && !isHttp2(request) && response.socket === null;
  }

  /**
   * Since when it has neither been worked on nor come to an end, because it is arriving, stays open as a watch does, or
   * its response is not read; undefined otherwise.
   */
  get stalledSince(): number | undefined {
    const { record, response, startedAt } = this.exchange;
    if (record.givenUp !== undefined || this.behind) return undefined;
    if (this.arriving || this.watch !== undefined) return startedAt;
    return response.writableEnded ? this.answeredAt : undefined;
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
export function giveUp({ exchange }: OpenRequest, why: NonNullable<ExchangeRecord['givenUp']>): void {
  exchange.givenUp(why);
  const stream = streamOf(exchange.request);
  if (stream === undefined) exchange.request.socket.destroy();
  else stream.close(constants.NGHTTP2_CANCEL);
}

/** Closes a connection, with a GOAWAY where it speaks HTTP/2. */
export function closeConnection({ session, socket }: Connection): void {
  if (session !== undefined && !session.destroyed) session.destroy();
  else socket.destroy();
}
