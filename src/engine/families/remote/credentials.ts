/**
 * Reads the TLS files that a package names, anew for every connection: certificates are replaced while the service
 * runs.
 */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { TlsOptions } from './server-options.ts';

/** PEM texts. Without a CA, those that Node trusts are trusted. */
export interface TlsCredentials {
  readonly ca?: Buffer;
  readonly certificate?: Buffer;
  readonly key?: Buffer;
  readonly serverName?: string;
}

/** The files' contents. Rejects with an Error that names the file that cannot be read. */
export async function readCredentials(
  tls: TlsOptions | undefined,
  folder: string,
): Promise<TlsCredentials | undefined> {
  if (tls === undefined) return undefined;
  const read = async (name: 'ca' | 'certificate' | 'key'): Promise<{ readonly [part in typeof name]?: Buffer }> => {
    const file = tls[name];
    if (file === undefined) return {};
    try {
      return { [name]: await readFile(resolve(folder, file)) };
    } catch (error) {
      throw new Error(`server.tls.${name}: '${file}' cannot be read (${(error as NodeJS.ErrnoException).code})`);
    }
  };
  return {
    ...(await read('ca')),
    ...(await read('certificate')),
    ...(await read('key')),
    ...(tls.serverName !== undefined && { serverName: tls.serverName }),
  };
}
