/** The certificate and key that settings name, read and checked. */
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';

/** The certificate and key of the files, as PEM texts; undefined if neither is set. Adds what is wrong to `problems`. */
export function readTlsFiles(
  cert: string | undefined,
  key: string | undefined,
  problems: string[],
): { readonly cert: string; readonly key: string } | undefined {
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined || key === undefined) {
    problems.push('TLS_CERT and TLS_KEY belong together');
    return undefined;
  }
  const read = (name: string, file: string): string => {
    try {
      const text = readFileSync(file, 'utf8');
      if (text.trim() === '') problems.push(`${name}: '${file}' is empty`);
      return text.trim();
    } catch (error) {
      problems.push(`${name}: '${file}' cannot be read (${(error as NodeJS.ErrnoException).code})`);
      return '';
    }
  };
  const tls = { cert: read('TLS_CERT', cert), key: read('TLS_KEY', key) };
  if (tls.cert === '' || tls.key === '') return tls;
  try {
    createSecureContext(tls);
  } catch (error) {
    problems.push(`TLS_CERT and TLS_KEY: ${(error as Error).message}`);
  }
  return tls;
}
