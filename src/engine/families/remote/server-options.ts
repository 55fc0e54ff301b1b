/**
 * `options.server` of a package: where its server is, and with what credentials it is asked.
 *
 *     { "address": "<host>:<port>",
 *       "tls": { "ca", "certificate", "key": PEM files, "server_name" }, all of them optional: {} trusts the CAs that
 *              Node trusts,
 *       "token_file": a file that holds a bearer token, or "token_env": a variable UMPIRE_TOKEN_… that does,
 *       "path": of an HTTP server, from the first slash, "health": the path that says whether it is ready,
 *       "token_header": of an HTTP server, where it wants the token in another header than `authorization` }
 *
 * Without `tls` the connection is in clear. Files lie in the package's folder unless their paths are absolute, and are
 * not listed in `files`: they are read anew for every connection, since they are replaced while the service runs.
 */
import { resolve } from 'node:path';
import { codeOf } from '../../errors.ts';
import type { Checker } from '../../packages/manifest.ts';
import { MOST_SETTING_BYTES, readRegular } from '../../packages/regular-file.ts';
import { ADDRESS_PATTERN, TOKEN_VARIABLE_PATTERN } from '../../packages/servers.ts';

/** How a server is reached. Paths as the manifest has them. */
export interface ServerOptions {
  readonly address: string;
  readonly tls: TlsOptions | undefined;
  readonly token: TokenSource | undefined;
}

/** PEM files. Without a CA, those that Node trusts are trusted. */
interface TlsOptions {
  readonly ca: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  readonly serverName: string | undefined;
}

/** Where the bearer token is. */
type TokenSource =
  | { readonly kind: 'file'; readonly file: string }
  | { readonly kind: 'variable'; readonly variable: string };

/** An HTTP server. */
export interface HttpServerOptions extends ServerOptions {
  /** The path of requests for scores, with a query string if there is one. */
  readonly path: string;
  /** The path that is asked whether the server is ready. */
  readonly health: string;
  /** The header that holds the token as it is; undefined for `authorization`, where it is a bearer token. */
  readonly tokenHeader?: string | undefined;
}

/** The paths that are used unless a package names others. */
export type HttpPaths = Pick<HttpServerOptions, 'path' | 'health'>;

/** Names of headers that may hold a token. */
const HEADER_PATTERN = /^(?=.*(auth|key|token))[a-z][a-z0-9-]{0,63}$/;

/** A path that goes into a request's first line as it is. */
const PATH_PATTERN = /^\/[\w\-.~!$&'()*+,;=:@/?%]{0,1023}$/;

/** Reads `server` of the options; what is wrong becomes a problem. */
export function readServer(fields: Checker): ServerOptions {
  const server = fields.object('server');
  const found = commonOf(server);
  server.refuseOthers();
  return found;
}

/** The same for an HTTP server, which also has paths. */
export function readHttpServer(fields: Checker, paths: HttpPaths): HttpServerOptions {
  const server = fields.object('server');
  const found = {
    ...commonOf(server),
    path: server.text('path', PATH_PATTERN, paths.path),
    health: server.text('health', PATH_PATTERN, paths.health),
    tokenHeader: server.optionalText('token_header', HEADER_PATTERN),
  };
  server.refuseOthers();
  return found;
}

function commonOf(server: Checker): ServerOptions {
  return {
    address: server.text('address', ADDRESS_PATTERN),
    tls: server.has('tls') ? tlsOf(server.object('tls')) : undefined,
    token: tokenOf(server),
  };
}

function tlsOf(tls: Checker): TlsOptions {
  const [certificate, key] = [tls.optionalText('certificate', /./u), tls.optionalText('key', /./u)];
  if ((certificate === undefined) !== (key === undefined)) tls.problem('must have certificate and key together');
  const found = {
    ca: tls.optionalText('ca', /./u),
    certificate,
    key,
    serverName: tls.optionalText('server_name', /./u),
  };
  tls.refuseOthers();
  return found;
}

function tokenOf(server: Checker): TokenSource | undefined {
  const file = server.optionalText('token_file', /./u);
  const variable = server.optionalText('token_env', TOKEN_VARIABLE_PATTERN);
  if (file !== undefined && variable !== undefined) server.problem('must have token_file or token_env, not both');
  if (file !== undefined) return { kind: 'file', file };
  return variable === undefined ? undefined : { kind: 'variable', variable };
}

// Reads the TLS files that a package names, anew for every connection: certificates are replaced while the service
// runs.

/** PEM texts. Without a CA, those that Node trusts are trusted. */
export interface TlsCredentials {
  readonly ca: Buffer | undefined;
  readonly certificate: Buffer | undefined;
  readonly key: Buffer | undefined;
  readonly serverName: string | undefined;
}

/** The files' contents. Rejects with an Error that names the file that cannot be read. */
export async function readCredentials(
  tls: TlsOptions | undefined,
  folder: string,
): Promise<TlsCredentials | undefined> {
  if (tls === undefined) return undefined;
  const read = async (name: 'ca' | 'certificate' | 'key'): Promise<Buffer | undefined> => {
    const file = tls[name];
    return file === undefined ? undefined : await contentOf(file, folder, `tls.${name}`);
  };
  return {
    ca: await read('ca'),
    certificate: await read('certificate'),
    key: await read('key'),
    serverName: tls.serverName,
  };
}

/** The content of a file that `server` names in this field. Rejects with an Error that names both. */
async function contentOf(file: string, folder: string, field: string): Promise<Buffer> {
  try {
    return await readRegular(resolve(folder, file), MOST_SETTING_BYTES);
  } catch (error) {
    throw new Error(`server.${field}: '${file}' cannot be read (${codeOf(error)})`);
  }
}

// The bearer token of a package. It is read anew for every connection: tokens are replaced while the service runs. It
// appears in no message: these name its file or variable and never quote it.

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
  const text =
    source.kind === 'file'
      ? (await contentOf(source.file, folder, 'token_file')).toString('utf8')
      : process.env[source.variable];
  if (text === undefined) throw new Error(`server.${field}: ${name} is not set`);
  const token = text.trim();
  if (!TOKEN_PATTERN.test(token)) throw new Error(`server.${field}: ${name} must hold one token on one line`);
  return token;
}

/** What a server said, without the token, which some servers quote when they refuse it. */
export function withoutToken(said: string, token: string | undefined): string {
  return token === undefined ? said : said.replaceAll(token, '[token]');
}
