/** The certificate and key that settings name, read and checked. */
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';

/** The certificate and key of the files, as PEM texts; undefined if neither is set. `problems` says what is wrong. */
export function readTlsFiles(
  cert: string | undefined,
  key: string | undefined,
): {
  readonly value: { readonly cert: string; readonly key: string } | undefined;
  readonly problems: readonly string[];
} {
  if (cert === undefined && key === undefined) return { value: undefined, problems: [] };
  if (cert === undefined || key === undefined)
    return { value: undefined, problems: ['TLS_CERT and TLS_KEY belong together'] };
  const problems: string[] = [];
  const read = (name: string, file: string): string => {
    try {
      // A pipe would stop the process for ever, at the latest when the files are read again.
      if (!statSync(file).isFile()) {
        problems.push(`${name}: '${file}' is not a regular file`);
        return '';
      }
      const text = readFileSync(file, 'utf8');
      if (text.trim() === '') problems.push(`${name}: '${file}' is empty`);
      return text.trim();
    } catch (error) {
      problems.push(`${name}: '${file}' cannot be read (${(error as NodeJS.ErrnoException).code})`);
      return '';
    }
  };
  const tls = { cert: read('TLS_CERT', cert), key: read('TLS_KEY', key) };
  if (tls.cert === '' || tls.key === '') return { value: tls, problems };
  try {
    createSecureContext(tls);
  } catch (error) {
    problems.push(`TLS_CERT and TLS_KEY: ${(error as Error).message}`);
  }
  return { value: tls, problems };
}
