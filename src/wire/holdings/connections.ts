/**
 * The connections of a port, counted for each address and in all. Those of trusted proxies are counted in all only:
 * they carry many callers. Where there is no room for another, the one that has been idle longest is closed, so that a
 * newcomer is served and callers keep the connections that they use.
 */
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { clientAddress, NO_PROXIES, type TrustedProxies } from '../../domain/client-address.ts';
import { type HttpRequest, isHttp2 } from '../http/messages.ts';
import { createLine } from '../http/turns.ts';
import { type Account, type Accounts, take } from './accounts.ts';
import { type Connection, closeConnection, type OpenRequest } from './open-request.ts';
import type { HoldingSettings } from './settings.ts';
import type { HoldingTally } from './tally.ts';

/** Tells one TCP connection to a port from all others, whichever object stands for it. */
const peerOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress}`;

/** What connections are judged by, and counted in. */
export interface ConnectionsOptions {
  readonly settings: HoldingSettings;
  readonly trustedProxies: TrustedProxies;
  readonly accounts: Accounts;
  readonly tally: HoldingTally;
}

/** The open connections of a port, each found by its socket, its session or a request on it. */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #all = new Set<Connection>();
  /** Those without a request, longest idle first. */
  readonly #idle = new Set<Connection>();
  readonly #byPeer = new Map<string, Connection>();
  readonly #bySocket = new Map<object, Connection>();
  readonly #bySession = new Map<ServerHttp2Session, Connection>();

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** Counts a new connection. Returns undefined, and closes it, if there is no room. */
  accept(socket: Socket, now: number): Connection | undefined {
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
    const requests = new Set<OpenRequest>();
    const connection: Connection = {
      socket,
      account,
      requests,
      session: undefined,
      moved: 0,
      movedAt: now,
      ending: false,
      line: account?.line ?? createLine(),
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

  /** Notes that a request has begun on a connection, which is not idle until `end`. */
  begin(connection: Connection, request: OpenRequest): void {
    if (connection.requests.size === 0) this.#idle.delete(connection);
    connection.requests.add(request);
  }

  /** Notes that a request is over. */
  end(connection: Connection, request: OpenRequest): void {
    connection.requests.delete(request);
    if (connection.requests.size === 0 && this.#all.has(connection)) this.#idle.add(connection);
  }

  values(): Iterable<Connection> {
    return this.#all;
  }

  get size(): number {
    return this.#all.size;
  }

  #add(connection: Connection): void {
    const { socket, account, requests } = connection;
    const peer = peerOf(socket);
    this.#all.add(connection);
    this.#idle.add(connection);
    this.#bySocket.set(socket, connection);
    this.#byPeer.set(peer, connection);
    if (account !== undefined) account.connections += 1;
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
    if (!this.#all.delete(connection)) return;
    this.#idle.delete(connection);
    if (connection.account !== undefined) connection.account.connections -= 1;
  }

  /** Why a connection is refused; undefined if there is room for it. */
  #refusal(account: Account | undefined, now: number): keyof HoldingTally['refused'] | undefined {
    const { settings } = this.#options;
    if (account !== undefined) {
      if (account.blockedUntil > now || !take(account, 'connection', settings.connectionRate, now)) return 'rate';
      const full = account.connections >= settings.connections.perAddress;
      if (full && !this.#evict((connection) => connection.account === account)) return 'address';
    }
    return this.#all.size >= settings.connections.total && !this.#evict(() => true) ? 'full' : undefined;
  }

  /** Closes the connection that has been idle longest of those that `fits` names; returns whether there was one. */
  #evict(fits: (connection: Connection) => boolean): boolean {
    for (const connection of this.#idle) {
      if (!fits(connection)) continue;
      this.#forget(connection);
      closeConnection(connection);
      this.#options.tally.evicted += 1;
      return true;
    }
    return false;
  }
}
