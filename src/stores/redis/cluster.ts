/** Redis Cluster: the client library finds the slots, follows redirections and reconnects to nodes. */
import { createCluster } from 'redis';
import type { HostPort } from '../settings.ts';
import {
  CONNECT_TIMEOUT_MS,
  nodeOptions,
  type RedisConnection,
  type RedisNodeConnection,
  socketOptions,
  within,
} from './connection.ts';
import { slotOf } from './slots.ts';

/** Milliseconds before each attempt to reconnect to a node; the last holds for all further ones. */
const RECONNECT_MS = [50, 100, 200, 400] as const;

/** Opens a connection to a cluster; the URL carries user, password and TLS for all nodes. */
export async function openCluster(url: URL, seeds: readonly HostPort[]): Promise<RedisConnection> {
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
