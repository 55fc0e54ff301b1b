/** Listening as a promise, which Node's own `listen` does not return: on a port, or on a Unix socket. */
import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { type AddressInfo, connect, type Server } from 'node:net';

/** Where a server listens: a port of an address, or the path of a Unix socket, for which `host` does not count. */
export interface Place {
  readonly port: number | string;
  readonly host: string;
  /** Connections that wait for the system to accept them. */
  readonly backlog?: number;
}

/** All addresses of a machine, IPv6 and IPv4, and those of one that has no IPv6. */
const [ANY, ANY_IPV4] = ['::', '0.0.0.0'];
/** What the system says where IPv6 is off. */
const NO_IPV6 = ['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL'];
/** The mode of a Unix socket, whatever the umask: its owner and its group may connect. */
const SOCKET_MODE = 0o660;

/**
 * Resolves with the place once connections are accepted: port 0 has become a free one, and `::`, where IPv6 is off,
 * `0.0.0.0`. The file of a Unix socket on which nobody listens any more is replaced. @throws the system's error if the
 * place is not available.
 */
export async function listen(server: Server, place: Place): Promise<Place> {
  try {
    return await open(server, place);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (place.host === ANY && NO_IPV6.includes(code)) return await open(server, { ...place, host: ANY_IPV4 });
    if (typeof place.port !== 'string' || code !== 'EADDRINUSE' || !(await isStale(place.port))) throw error;
    unlinkSync(place.port);
    return await open(server, place);
  }
}

function open(server: Server, { port, host, backlog = 511 }: Place): Promise<Place> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(typeof port === 'string' ? { path: port, backlog } : { port, host, backlog }, () => {
      server.off('error', reject);
      if (typeof port === 'string') chmodSync(port, SOCKET_MODE);
      resolve({ host, port: typeof port === 'string' ? port : (server.address() as AddressInfo).port });
    });
  });
}

/** Whether a path is a Unix socket on which nobody listens. */
function isStale(path: string): Promise<boolean> {
  if (!lstatSync(path).isSocket()) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = connect(path, () => resolve(false));
    socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED'));
    socket.on('connect', () => socket.destroy());
  });
}
