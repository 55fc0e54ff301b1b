/** Listening as a promise, which Node's own `listen` does not return: on a port, or on a Unix socket. */
import { lstatSync, unlinkSync } from 'node:fs';
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
/** All that a new Unix socket does not grant: its owner and its group may connect. */
const SOCKET_MASK = 0o117;

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
    const opened = (): void => {
      server.off('error', reject);
      resolve({ host, port: typeof port === 'string' ? port : (server.address() as AddressInfo).port });
    };
    if (typeof port === 'number') {
      server.listen({ port, host, backlog }, opened);
      return;
    }
    // The file is made within the call: a change of its mode afterwards would come too late.
    const before = process.umask(SOCKET_MASK);
    try {
      server.listen({ path: port, backlog }, opened);
    } finally {
      process.umask(before);
    }
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
