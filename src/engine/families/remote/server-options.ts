/**
 * `options.server` of a package: where its server is, and with what credentials it is asked.
 *
 *     { "address": "<host>:<port>",
 *       "tls": { "ca", "certificate", "key": PEM files, "server_name" }, all of them optional: {} trusts the CAs that
 *              Node trusts,
 *       "token_file": a file that holds a bearer token, or "token_env": a variable UMPIRE_TOKEN_… that does,
 *       "path": of an HTTP server, from the first slash, "health": the path that says whether it is ready }
 *
 * Without `tls` the connection is in clear. Files lie in the package's folder unless their paths are absolute, and are
 * not listed in `files`: they are read anew for every connection, since they are replaced while the service runs.
 */
import type { Checker } from '../../packages/checker.ts';
import { ADDRESS_PATTERN, TOKEN_VARIABLE_PATTERN } from '../../packages/servers.ts';

/** How a server is reached. Paths as the manifest has them. */
export interface ServerOptions {
  readonly address: string;
  readonly tls: TlsOptions | undefined;
  readonly token: TokenSource | undefined;
}

/** PEM files. Without a CA, those that Node trusts are trusted. */
export interface TlsOptions {
  readonly ca: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  readonly serverName: string | undefined;
}

/** Where the bearer token is. */
export type TokenSource =
  | { readonly kind: 'file'; readonly file: string }
  | { readonly kind: 'variable'; readonly variable: string };

/** An HTTP server. */
export interface HttpServerOptions extends ServerOptions {
  /** The path of requests for scores, with a query string if there is one. */
  readonly path: string;
  /** The path that is asked whether the server is ready. */
  readonly health: string;
}

/** The paths that are used unless a package names others. */
export type HttpPaths = Pick<HttpServerOptions, 'path' | 'health'>;

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
  const path = (field: keyof HttpPaths): string =>
    server.value(field) === undefined ? paths[field] : server.text(field, PATH_PATTERN);
  const found = { ...commonOf(server), path: path('path'), health: path('health') };
  server.refuseOthers();
  return found;
}

function commonOf(server: Checker): ServerOptions {
  return {
    address: server.text('address', ADDRESS_PATTERN),
    tls: server.value('tls') === undefined ? undefined : tlsOf(server.object('tls')),
    token: tokenOf(server),
  };
}

function tlsOf(tls: Checker): TlsOptions {
  const [certificate, key] = [textIn(tls, 'certificate'), textIn(tls, 'key')];
  if ((certificate === undefined) !== (key === undefined)) tls.problem('must have certificate and key together');
  const found = { ca: textIn(tls, 'ca'), certificate, key, serverName: textIn(tls, 'server_name') };
  tls.refuseOthers();
  return found;
}

function tokenOf(server: Checker): TokenSource | undefined {
  const file = textIn(server, 'token_file');
  const variable = textIn(server, 'token_env', TOKEN_VARIABLE_PATTERN);
  if (file !== undefined && variable !== undefined) server.problem('must have token_file or token_env, not both');
  if (file !== undefined) return { kind: 'file', file };
  return variable === undefined ? undefined : { kind: 'variable', variable };
}

function textIn(fields: Checker, field: string, pattern = /./u): string | undefined {
  return fields.value(field) === undefined ? undefined : fields.text(field, pattern);
}
