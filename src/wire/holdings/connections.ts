/**
 * The connections of a port, counted for each address and in all. Those of trusted proxies are counted for all alone: they carry many callers.
 * Where there is room for no more, the one that has been idle longest goes, so that a newcomer is served and callers who use theirs keep them.
 */
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { clientAddress, NO_PROXIES, type TrustedProxies } from '../../domain/client-address.ts';
import { type HttpRequest, isHttp2 } from '../http/messages.ts';
import { type Account, type Accounts, take } from './accounts.ts';
import { type Connection, closeConnection, type OpenRequest } from './open-request.ts';
import type { HoldingSettings } from './settings.ts';
import type { HoldingTally } from './tally.ts';

/** The open connections of a port, each found by its socket, its session or a request on it. */
export interface Connections {
  /** Counts a new connection. Returns undefined, and closes it, if there is no room. */
  accept(socket: Socket, now: number): Connection | undefined;
  /** The socket on which a connection's requests come, where that is not its own. */
  bind(socket: Socket): void;
  /** The session that a connection became. */
  bindSession(session: ServerHttp2Session): void;
  /** The connection that a request came on; undefined if it is gone. */
  of(request: HttpRequest): Connection | undefined;
  ofSession(session: ServerHttp2Session | undefined): Connection | undefined;
  begin(connection: Connection, request: OpenRequest): void;
  end(connection: Connection, request: OpenRequest): void;
  values(): Iterable<Connection>;
  readonly size: number;
}

/** What tells one TCP connection to a port from all others, whichever object stands for it. */
const peerOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress}`;

/** No connections yet. */
export function createConnections(options: {
  readonly settings: HoldingSettings;
  readonly trustedProxies: TrustedProxies;
  readonly accounts: Accounts;
  readonly tally: HoldingTally;
}): Connections {
  const { settings, trustedProxies, accounts, tally } = options;
  const all = new Set<Connection>();
  /** Those without a request, longest idle first. */
  const idle = new Set<Connection>();
  const byPeer = new Map<string, Connection>();
  const bySocket = new Map<object, Connection>();
  const bySession = new Map<ServerHttp2Session, Connection>();

  const forget = (connection: Connection): void => {
    if (!all.delete(connection)) return;
    idle.delete(connection);
    if (connection.account !== undefined) connection.account.connections -= 1;
  };

  /** Closes the longest idle one that `fits`, and says whether there was one. */
  const evict = (fits: (connection: Connection) => boolean): boolean => {
    for (const connection of idle) {
      if (!fits(connection)) continue;
      forget(connection);
      closeConnection(connection);
      tally.evicted += 1;
      return true;
    }
    return false;
  };

  const refusal = (account: Account | undefined, now: number): keyof HoldingTally['refused'] | undefined => {
    if (account !== undefined) {
      if (account.blockedUntil > now || !take(account, 'connection', settings.connectionRate, now)) return 'rate';
      const full = account.connections >= settings.connections.perAddress;
      if (full && !evict((connection) => connection.account === account)) return 'address';
    }
    return all.size >= settings.connections.total && !evict(() => true) ? 'full' : undefined;
  };

  return {
    accept(socket, now) {
      const { remoteAddress } = socket;
      if (remoteAddress === undefined) {
        socket.destroy();
        return undefined;
      }
      const account = trustedProxies.has(remoteAddress)
        ? undefined
        : accounts.of(clientAddress(remoteAddress, undefined, NO_PROXIES));
      const refused = refusal(account, now);
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
      };
      const peer = peerOf(socket);
      all.add(connection);
      idle.add(connection);
      bySocket.set(socket, connection);
      byPeer.set(peer, connection);
      if (account !== undefined) account.connections += 1;
      socket.once('close', () => {
        forget(connection);
        bySocket.delete(socket);
        if (byPeer.get(peer) === connection) byPeer.delete(peer);
        // Responses end with it, in this turn. Node forgets those that wait for an earlier one of their pipeline where a CONNECT came after them.
        if (requests.size === 0) return;
        setImmediate(() => {
          for (const request of [...requests]) request.end();
        });
      });
      return connection;
    },
    bind(socket) {
      const connection = byPeer.get(peerOf(socket));
      if (connection === undefined) return;
      bySocket.set(socket, connection);
      socket.once('close', () => bySocket.delete(socket));
    },
    bindSession(session) {
      // What came with the preface may have ended it already; its socket can then not be asked.
      if (session.destroyed) return;
      const connection = byPeer.get(peerOf(session.socket as Socket));
      if (connection === undefined) return;
      connection.session = session;
      bySession.set(session, connection);
      session.once('close', () => bySession.delete(session));
    },
    of(request) {
      if (!isHttp2(request)) return bySocket.get(request.socket);
      const { session } = (request as unknown as { stream: { session: ServerHttp2Session | undefined } }).stream;
      return session === undefined ? undefined : bySession.get(session);
    },
    ofSession: (session) => (session === undefined ? undefined : bySession.get(session)),
    begin(connection, request) {
      if (connection.requests.size === 0) idle.delete(connection);
      connection.requests.add(request);
    },
    end(connection, request) {
      connection.requests.delete(request);
      if (connection.requests.size === 0 && all.has(connection)) idle.add(connection);
    },
    values: () => all,
    get size() {
      return all.size;
    },
  };
}
