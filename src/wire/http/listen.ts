/** Listening as a promise, which Node's own `listen` does not return. */
import type { AddressInfo, ListenOptions, Server } from 'node:net';

/** Resolves with the port once connections are accepted. @throws the system's error if the address is not available. */
export function listen(server: Server, options: ListenOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}
