/**
 * Connections to Redis in its three shapes, behind one small interface. They never reconnect a lost plain connection by
 * themselves: link.ts opens a new one, so that a name is resolved and a Sentinel asked again each time. This folder
 * alone imports `redis`.
 */
import { isIP } from 'node:net';
import { createClient, ErrorReply, type RedisClientOptions } from 'redis';

/** One server that holds data: the only one, a Sentinel's master, or a master of a cluster. */
export interface RedisNodeConnection {
  /** The same object for the same connection. */
  readonly identity: object;
  /** Sends one command; resolves to the reply, rejects with the client's errors. */
  send(command: readonly string[]): Promise<unknown>;
}

/** An open connection to the whole of Redis. */
export interface RedisConnection {
  /** Sends a command to the server that has the key. */
  send(key: string, command: readonly string[]): Promise<unknown>;
  /** The server that has the key, as the last command to it found out. */
  nodeOf(key: string): Promise<RedisNodeConnection>;
  /** Every server that holds data, for what must walk all keys. */
  nodes(): Promise<readonly RedisNodeConnection[]>;
  /** Which server has the key: a name that stays the same for as long as it does. */
  shardOf(key: string): string;
  /** The names that `shardOf` gives, one for each server that has keys. */
  shards(): readonly string[];
  /** Whether a server answers and is a master; rejects if it does not answer. */
  probe(shard: string): Promise<boolean>;
  /** Drops it; what is in flight is rejected. */
  destroy(): void;
}

/** Opens a connection or rejects; `onLost` is called once if an open one is lost for good. */
export type OpenRedis = (onLost: (cause: unknown) => void) => Promise<RedisConnection>;

/** An attempt that takes longer is given up and made again. */
export const CONNECT_TIMEOUT_MS = 2_000;

/** What every connection has in common. Commands have no timeout of the client's own: link.ts races each one. */
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
  // TLS names servers by name alone; a certificate for an address is checked against the address.
  return { ...shared, tls: true as const, ...(isIP(address.host) === 0 ? { servername: address.host } : {}) };
}

let first: ReturnType<typeof createClient> | undefined;

/**
 * A client that is not connected yet. Each that is created outright builds a class with all of Redis's commands,
 * which takes tens of milliseconds and would hold up the process at every attempt to connect; a duplicate uses the
 * first one's class.
 */
export function newClient(options: RedisClientOptions): ReturnType<typeof createClient> {
  first ??= createClient();
  return first.duplicate(options as never);
}

/** The address that a URL names. */
export function addressOf(url: URL): { readonly host: string; readonly port: number } {
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port === '' ? 6379 : Number(url.port) };
}

/**
 * Opens one connection to one server, which must be a master and stay one: on a replica every write fails, and reads
 * are of the past.
 */
export async function openNode(
  url: URL,
  address: { readonly host: string; readonly port: number },
  onLost: (cause: unknown) => void,
): Promise<RedisConnection> {
  const client = newClient({ ...nodeOptions(url), socket: socketOptions(url, address) });
  let lost = false;
  client.on('error', (error) => {
    // Once open, an error means that the connection is gone: it does not reconnect.
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
      // A user without the right to ask for the role may still have all that Umpire needs.
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

/** Rejects when the promise takes longer; what it does later is ignored. */
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
