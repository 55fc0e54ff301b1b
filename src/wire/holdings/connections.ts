/**
 * The connections of a port, counted for each address and in all. Those of trusted proxies are counted in all only:
 * they carry many callers, and each takes the place of the caller whose request it carries. Where there is no room for
 * another, one that is idle or on which nothing moves is closed, so that a newcomer is served and callers keep the
 * connections that they use.
 */
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { clientAddress, NO_PROXIES, type TrustedProxies } from '../../domain/client-address.ts';
import { type HttpRequest, isHttp2 } from '../http/messages.ts';
import { Line } from '../http/turns.ts';
import { type Account, type Accounts, COSTS, type HoldingTally, take } from './accounts.ts';
import { type Connection, closeConnection, type OpenRequest } from './open-request.ts';
import { Places } from './places.ts';
import type { HoldingSettings } from './settings.ts';

/** Tells one TCP connection to a port from all others, whichever object stands for it. */
const peerOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress}`;

/** The account of trusted proxies' connections that carry no request. No address is written so. */
const PROXIES = 'trusted proxies';
/** Milliseconds for which nothing may have moved on a connection before a newer one may take its place. */
const LEAST_WAIT = 1000;

/** What connections are judged by, and counted in. */
export interface ConnectionsOptions {
  readonly settings: HoldingSettings;
  readonly trustedProxies: TrustedProxies;
  readonly accounts: Accounts;
  readonly tally: HoldingTally;
  /** Gives up a request whose connection is closed for another. */
  displace(request: OpenRequest): void;
}

/** The open connections of a port, each found by its socket, its session or a request on it. */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #all = new Set<Connection>();
  readonly #places: Places<Connection>;
  readonly #byPeer = new Map<string, Connection>();
  readonly #bySocket = new Map<object, Connection>();
  readonly #bySession = new Map<ServerHttp2Session, Connection>();

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#places = new Places({
      bound: options.settings.connections,
      spareSince,
      giveUp: (connection) => this.#evict(connection),
    });
  }

  /** Counts a new connection. Returns undefined, and closes it, if there is no room. */
  accept(socket: Socket): Connection | undefined {
    const now = performance.now();
    const { trustedProxies, accounts, tally } = this.#options;
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      socket.destroy();
      return undefined;
    }
    const account = trustedProxies.has(remoteAddress)
      ? undefined
      : accounts.of(clientAddress(remoteAddress, undefined, NO_PROXIES));
    const refused = this.#refusal(account, now);
    if (refused !== undefined) {
      tally.refused[refused] += 1;
      socket.destroy();
      return undefined;
    }
    const connection: Connection = {
      socket,
      account,
      holder: account ?? accounts.of(PROXIES),
      idleSince: now,
      requests: new Set(),
      session: undefined,
      moved: 0,
      movedAt: now,
      ending: false,
      line: account?.line ?? new Line(),
      turn: 0,
      streams: 0,
    };
    this.#add(connection);
    return connection;
  }

  /** Notes the socket on which a connection's requests come, where that is not its own. Returns the connection. */
  bind(socket: Socket): Connection | undefined {
    const connection = this.#byPeer.get(peerOf(socket));
    if (connection === undefined) return undefined;
    this.#bySocket.set(socket, connection);
    socket.once('close', () => this.#bySocket.delete(socket));
    return connection;
  }

  /** Notes the session that a connection became. */
  bindSession(session: ServerHttp2Session): void {
    // What came with the preface may have ended the session already; it then has no socket to ask.
    if (session.destroyed) return;
    const connection = this.#byPeer.get(peerOf(session.socket as Socket));
    if (connection === undefined) return;
    connection.session = session;
    this.#bySession.set(session, connection);
    session.once('close', () => this.#bySession.delete(session));
  }

  /** The connection that a request came on; undefined if it is gone. */
  of(request: HttpRequest): Connection | undefined {
    if (!isHttp2(request)) return this.#bySocket.get(request.socket);
    return this.ofSession(
      (request as unknown as { stream: { session: ServerHttp2Session | undefined } }).stream.session,
    );
  }

  /** The connection that became a session; undefined if it is gone. */
  ofSession(session: ServerHttp2Session | undefined): Connection | undefined {
    return session === undefined ? undefined : this.#bySession.get(session);
  }

  /** Notes that a request is over. */
  end(connection: Connection, request: OpenRequest): void {
    connection.requests.delete(request);
    if (connection.requests.size > 0) return;
    connection.idleSince = request.exchange.record.endedAt;
    if (connection.account === undefined && this.#places.give(connection.holder, connection))
      this.#hold(connection, this.#options.accounts.of(PROXIES));
  }

  /**
   * Whether there is room for the connection on which a request came. Whose place it takes is known only now where it
   * is a trusted proxy's that carried no other.
   */
  hasRoomFor({ account, connection }: OpenRequest, now: number): boolean {
    const { holder } = connection;
    if (holder.address !== PROXIES || !this.#places.give(holder, connection)) return true;
    const has = this.#places.has(account, now);
    this.#hold(connection, has ? account : holder);
    return has;
  }

  values(): Iterable<Connection> {
    return this.#all;
  }

  get size(): number {
    return this.#all.size;
  }

  #add(connection: Connection): void {
    const { socket, holder, requests } = connection;
    const peer = peerOf(socket);
    this.#all.add(connection);
    this.#hold(connection, holder);
    this.#bySocket.set(socket, connection);
    this.#byPeer.set(peer, connection);
    socket.once('close', () => {
      this.#forget(connection);
      this.#bySocket.delete(socket);
      if (this.#byPeer.get(peer) === connection) this.#byPeer.delete(peer);
      // Responses end with their connection, in this turn of the event loop. Node forgets those that wait for an
      // earlier one of their pipeline where a CONNECT came after them, so these are ended here.
      if (requests.size === 0) return;
      setImmediate(() => {
        for (const request of [...requests]) request.end();
      });
    });
  }

  #forget(connection: Connection): void {
    if (this.#all.delete(connection)) this.#places.give(connection.holder, connection);
  }

  #hold(connection: Connection, account: Account): void {
    connection.holder = account;
    this.#places.take(account, connection);
  }

  /** Why a connection is refused; undefined if there is room for it. */
  #refusal(account: Account | undefined, now: number): keyof HoldingTally['refused'] | undefined {
    if (account !== undefined) {
      const { requestRate } = this.#options.settings;
      if (account.blockedUntil > now || !take(account, COSTS.connection, requestRate, now)) return 'rate';
      if (!this.#places.hasOwn(account, now)) return 'address';
    }
    const has =
      account === undefined
        ? this.#places.has(this.#options.accounts.of(PROXIES), now, 0)
        : this.#places.has(account, now);
    return has ? undefined : 'full';
  }

  #evict(connection: Connection): void {
    this.#all.delete(connection);
    for (const request of connection.requests) this.#options.displace(request);
    closeConnection(connection);
    this.#options.tally.evicted += 1;
  }
}

/** Since when a connection is idle, or none of its requests has moved for a while; undefined else. */
function spareSince({ requests, idleSince }: Connection, now: number): number | undefined {
  if (requests.size === 0) return idleSince;
  let since: number | undefined;
  for (const request of requests) {
    if (request.behind) continue;
    const { stalledSince = now } = request;
    if (now - stalledSince < LEAST_WAIT) return undefined;
    since = Math.max(since ?? 0, stalledSince);
  }
  return since;
}
