/**
 * The bearer token of a package. It is read anew for every connection: tokens are replaced while the service runs. It
 * appears in no message: these name its file or variable and never quote it.
 */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { TokenSource } from './server-options.ts';

/** What a header takes as a token: the characters of RFC 6750, and others that vendors' keys contain. */
const TOKEN_PATTERN = /^[\x21-\x7e]{1,8192}$/;

/**
 * The token; undefined if the package names none. Rejects with an Error that names the file or the variable without
 * one.
 */
export async function readToken(source: TokenSource | undefined, folder: string): Promise<string | undefined> {
  if (source === undefined) return undefined;
  const [field, name] =
    source.kind === 'file' ? ['token_file', `'${source.file}'`] : ['token_env', `the variable ${source.variable}`];
  const text = source.kind === 'file' ? await fileText(source.file, folder) : process.env[source.variable];
  if (text === undefined) throw new Error(`server.${field}: ${name} is not set`);
  const token = text.trim();
  if (!TOKEN_PATTERN.test(token)) throw new Error(`server.${field}: ${name} must hold one token on one line`);
  return token;
}

/** What a server said, without the token, which some servers quote when they refuse it. */
export function withoutToken(said: string, token: string | undefined): string {
  return token === undefined ? said : said.replaceAll(token, '[token]');
}

async function fileText(file: string, folder: string): Promise<string> {
  try {
    return await readFile(resolve(folder, file), 'utf8');
  } catch (error) {
    throw new Error(`server.token_file: '${file}' cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
