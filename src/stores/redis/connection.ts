/**
 * Connections to Redis in its three shapes (one server, Sentinel, Cluster), behind one small interface. A connection to
 * one server never reconnects by itself: link.ts opens a new one, so that each time the name is resolved and a Sentinel
 * is asked again. This folder alone imports `redis`.
 */
import { isIP } from 'node:net';
import { createClient, ErrorReply, type RedisClientOptions } from 'redis';

/** One server that holds data: the only one, a Sentinel's master, or a master of a cluster. */
export interface RedisNodeConnection {
  /** An object that is the same for the same connection. */
  readonly identity: object;
  /** Sends one command. Resolves to the reply, rejects with the client's errors. */
  send(command: readonly string[]): Promise<unknown>;
}

/** An open connection to Redis, whichever shape it has. */
export interface RedisConnection {
  /** Sends a command to the server that has the key. */
  send(key: string, command: readonly string[]): Promise<unknown>;
  /** The server that has the key, as known since the last command about it. */
  nodeOf(key: string): Promise<RedisNodeConnection>;
  /** Every server that holds data, for what must scan all keys. */
  nodes(): Promise<readonly RedisNodeConnection[]>;
  /** A name of the server that has the key. It stays the same for as long as the server does. */
  shardOf(key: string): string;
  /** The names that `shardOf` returns, one for each server that has keys. */
  shards(): readonly string[];
  /** Whether a server answers and is a master; rejects if it does not answer. */
  probe(shard: string): Promise<boolean>;
  /** Closes the connection at once; commands in flight are rejected. */
  destroy(): void;
}

/** Opens a connection or rejects. `onLost` is called once if the connection, once open, is lost for good. */
export type OpenRedis = (onLost: (cause: unknown) => void) => Promise<RedisConnection>;

/** Milliseconds for an attempt to connect; one that takes longer is given up and made again. */
export const CONNECT_TIMEOUT_MS = 2_000;

/**
 * The client's options for every connection. Commands have no timeout in the client, since link.ts bounds each call.
 */
export function nodeOptions(url: URL): RedisClientOptions {
  return {
    RESP: 3,
    disableOfflineQueue: true,
    maintNotifications: 'disabled',
    disableClientInfo: true,
    pingInterval: 1_000,
    commandOptions: { timeout: 0 },
    ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
    ...(url.pathname.length > 1 ? { database: Number(url.pathname.slice(1)) } : {}),
  };
}

/** The socket's options for one address. */
export function socketOptions(url: URL, address: { readonly host: string; readonly port: number }) {
  const shared = {
    ...address,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: 5_000,
    reconnectStrategy: false as const,
  };
  if (url.protocol !== 'rediss:') return shared;
  // The server name of TLS (SNI) may not be an address; a certificate is then checked against the address.
  return { ...shared, tls: true as const, ...(isIP(address.host) === 0 ? { servername: address.host } : {}) };
}

/** The client of which all others are duplicates. */
let first: ReturnType<typeof createClient> | undefined;

/**
 * A client that is not connected yet. createClient() builds a class with all of Redis's commands, which takes tens of
 * milliseconds and would block the process at every attempt to connect; a duplicate shares the class of the first.
 */
export function newClient(options: RedisClientOptions): ReturnType<typeof createClient> {
  first ??= createClient();
  return first.duplicate(options as never);
}

/** The address in a URL, with Redis's port 6379 if it names none. */
export function addressOf(url: URL): { readonly host: string; readonly port: number } {
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port === '' ? 6379 : Number(url.port) };
}

/**
 * Opens a connection to one server, which must be a master and stay one: on a replica every write fails, and reads
 * return old data.
 */
export async function openNode(
  url: URL,
  address: { readonly host: string; readonly port: number },
  onLost: (cause: unknown) => void,
): Promise<RedisConnection> {
  const client = newClient({ ...nodeOptions(url), socket: socketOptions(url, address) });
  let lost = false;
  client.on('error', (error) => {
    // An error of an open connection means that it is lost, since it does not reconnect.
    if (!lost && opened) onLost(error);
    lost = true;
  });
  let opened = false;
  const node: RedisNodeConnection = { identity: client, send: (command) => client.sendCommand(command as string[]) };
  const connection: RedisConnection = {
    send: (_key, command) => node.send(command),
    nodeOf: async () => node,
    nodes: async () => [node],
    shardOf: () => '',
    shards: () => [''],
    async probe() {
      // A user who may not ask for the role may still have every right that Umpire needs.
      const role = await node
        .send(['ROLE'])
        .catch((error) => (isForbidden(error) ? node.send(['PING']) : Promise.reject(error)));
      return role === 'PONG' || (Array.isArray(role) && role[0] === 'master');
    },
    destroy: () => client.destroy(),
  };
  try {
    await within(CONNECT_TIMEOUT_MS, client.connect());
    if (!(await within(CONNECT_TIMEOUT_MS, connection.probe('')))) throw new Error('the server is not a master');
    opened = true;
    return connection;
  } catch (error) {
    client.destroy();
    throw error;
  }
}

function isForbidden(error: unknown): boolean {
  return error instanceof ErrorReply && error.message.startsWith('NOPERM');
}

/** The promise's outcome, or a rejection if it takes longer; what comes of it later is ignored. */
export async function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${Math.round(milliseconds)} ms`)), milliseconds);
  });
  promise.catch(() => {});
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Every name that matches the pattern, from all servers; of one server, each name once. */
export async function* scanNames(connection: RedisConnection, pattern: string): AsyncGenerator<string> {
  for (const node of await connection.nodes()) yield* scanNode(node, pattern);
}

async function* scanNode(node: RedisNodeConnection, pattern: string): AsyncGenerator<string> {
  const seen = new Set<string>();
  let cursor = '0';
  do {
    const reply = await node.send(['SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000']);
    const [next, names] = reply as [string, readonly string[]];
    for (const name of names) {
      // SCAN may return a name more than once.
      if (!seen.has(name)) yield name;
      seen.add(name);
    }
    cursor = next;
  } while (cursor !== '0');
}
