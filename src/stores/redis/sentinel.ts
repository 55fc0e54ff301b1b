/**
 * Redis behind Sentinels: each connection begins with asking them where the master is. The first one that knows answers
 * for all; that the server really is a master is checked on it, when the connection opens and at every heartbeat.
 */
import type { HostPort } from '../settings.ts';
import { newClient, nodeOptions, openNode, type RedisConnection, socketOptions, within } from './connection.ts';

/** Milliseconds for the connection to a Sentinel, and for its answer. */
const ASK_TIMEOUT_MS = 1_000;

/**
 * Opens a connection to the present master. The URL carries user, password, TLS and database for it; Sentinels
 * are asked without.
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
