/**
 * Redis behind Sentinels: before each connection they are asked where the master is, and the first answer is taken.
 * Whether that server really is a master is checked when the connection opens and at every heartbeat.
 */
import type { HostPort } from '../settings.ts';
import { newClient, nodeOptions, openNode, type RedisConnection, socketOptions, within } from './connection.ts';

/** Milliseconds for connecting to a Sentinel, and as many for its answer. */
const ASK_TIMEOUT_MS = 1_000;

/**
 * Opens a connection to the present master. The URL's user, password and database are for the master: Sentinels are
 * asked without them, over TLS if the URL says so.
 */
export async function openSentinel(
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
