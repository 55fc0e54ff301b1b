/**
 * Opens connections to Redis in the shape that the settings name: one server, a master behind Sentinels, or Redis
 * Cluster, where the client library finds the slots, follows redirections and reconnects to nodes.
 */
import { createCluster } from 'redis';
import type { HostPort, RedisSettings } from '../settings.ts';
import {
  addressOf,
  CONNECT_TIMEOUT_MS,
  newClient,
  nodeOptions,
  type OpenRedis,
  openNode,
  type RedisConnection,
  type RedisNodeConnection,
  socketOptions,
  within,
} from './connection.ts';
import { slotOf } from './names.ts';

/** Milliseconds before each attempt to reconnect to a node; the last holds for all further ones. */
const RECONNECT_MS = [50, 100, 200, 400] as const;

/** Opens a connection to a cluster; the URL carries user, password and TLS for all nodes. */
async function openCluster(url: URL, seeds: readonly HostPort[]): Promise<RedisConnection> {
  const { database: _database, commandOptions: _options, RESP: _protocol, ...defaults } = nodeOptions(url);
  const { host: _host, port: _port, ...socket } = socketOptions(url, { host: '', port: 0 });
  const cluster = createCluster({
    rootNodes: seeds.map((node) => ({ ...defaults, socket: socketOptions(url, node) })),
    defaults: {
      ...defaults,
      // A node that is away must not end the cluster's connection: the other nodes still serve.
      socket: {
        ...socket,
        reconnectStrategy: (retries: number) => RECONNECT_MS[Math.min(retries, RECONNECT_MS.length - 1)] ?? 400,
      },
    },
    topologyRefreshOnReconnectionAttemptStrategy: 500,
    maxCommandRedirections: 4,
    commandOptions: { timeout: 0 },
    RESP: 3,
  });
  cluster.on('error', () => {});
  const asNode = (client: Awaited<ReturnType<typeof cluster.nodeClient>>): RedisNodeConnection => ({
    identity: client,
    send: (command) => client.sendCommand(command as string[]),
  });
  const nodes = async (): Promise<readonly RedisNodeConnection[]> =>
    (await Promise.all(cluster.masters.map((master) => cluster.nodeClient(master)))).map(asNode);
  try {
    await within(2 * CONNECT_TIMEOUT_MS, cluster.connect());
  } catch (error) {
    cluster.destroy();
    throw error;
  }
  return {
    send: (key, command) => cluster.sendCommand(key, false, command as string[]),
    nodeOf: async (key) => asNode(await cluster.getNodeClientForKey(key)),
    nodes,
    shardOf: (key) => cluster.slots[slotOf(key)]?.master.address ?? '',
    shards: () => cluster.masters.map(({ address }) => address),
    async probe(shard) {
      const master = cluster.masters.find(({ address }) => address === shard);
      // A cluster moves its slots between nodes. One that is no longer a master has none, so no store call goes there,
      // and it need not answer.
      return master === undefined || (await asNode(await cluster.nodeClient(master)).send(['PING'])) === 'PONG';
    },
    destroy: () => cluster.destroy(),
  };
}

/** The function that opens connections to the Redis that the settings name. */
export function openerOf(settings: RedisSettings): OpenRedis {
  const { url, topology } = settings;
  switch (topology.kind) {
    case 'plain':
      return (onLost) => openNode(url, addressOf(url), onLost);
    case 'sentinel':
      return (onLost) => openSentinel(url, topology, onLost);
    case 'cluster':
      return () => openCluster(url, topology.nodes);
  }
}

// Redis behind Sentinels: before each connection they are asked where the master is, and the first answer is taken.
// Whether that server really is a master is checked when the connection opens and at every heartbeat.

/** Milliseconds for connecting to a Sentinel, and as many for its answer. */
const ASK_TIMEOUT_MS = 1_000;

/**
 * Opens a connection to the present master. The URL's user, password and database are for the master: Sentinels are
 * asked without them, over TLS if the URL says so.
 */
async function openSentinel(
  url: URL,
  topology: { readonly sentinels: readonly HostPort[]; readonly name: string },
  onLost: (cause: unknown) => void,
): Promise<RedisConnection> {
  const asked = topology.sentinels.map((sentinel) => askForMaster(url, sentinel, topology.name));
  const master = await Promise.any(asked);
  return openNode(url, master, onLost);
}

async function askForMaster(url: URL, sentinel: HostPort, name: string): Promise<HostPort> {
  const { username: _user, password: _password, database: _database, ...options } = nodeOptions(url);
  const client = newClient({
    ...options,
    socket: { ...socketOptions(url, sentinel), connectTimeout: ASK_TIMEOUT_MS },
  });
  client.on('error', () => {});
  try {
    await within(ASK_TIMEOUT_MS, client.connect());
    const reply = await within(ASK_TIMEOUT_MS, client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]));
    const [host, port] = Array.isArray(reply) ? reply : [];
    if (typeof host !== 'string' || !(Number(port) > 0))
      throw new Error(`Sentinel does not know a master called '${name}'`);
    return { host, port: Number(port) };
  } finally {
    client.destroy();
  }
}
