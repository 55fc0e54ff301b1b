/** Servers of a test's own, on free ports of this machine. */
import { once } from 'node:events';
import { createServer, type RequestListener, type ServerOptions } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import type { ExecutionContext } from 'ava';

/** Makes a server listen; resolves to its port. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Starts a server that answers by a function, for what the service itself never does; resolves to its address. */
export async function startScripted(
  t: ExecutionContext,
  answer: RequestListener,
  options: ServerOptions = {},
): Promise<string> {
  const server = createServer(options, answer);
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${await listen(server)}`;
}
