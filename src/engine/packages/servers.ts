/**
 * What a package says about the server that makes its numbers, the same for every remote family:
 * `options.server.address`, a `host:port` with an IPv6 host in brackets, and `options.in_flight.requests`. An
 * operator's own address replaces the one in a package, so that packages stay portable.
 */
import { isObject, isRemote, type JsonObject } from './manifest.ts';
import type { FoundPackage } from './scan.ts';

/** What an address looks like. */
export const ADDRESS_PATTERN = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]{0,252}))(:\d{1,5})$/;

/** Names of variables that hold bearer tokens: no other variable that a package names is passed to an engine. */
export const TOKEN_VARIABLE_PATTERN = /^UMPIRE_TOKEN_[A-Z0-9_]{1,64}$/;

/** Requests that a server may have at a time, where a package does not say. */
export const DEFAULT_REQUESTS = 8;

/**
 * Jobs that the process of a remote package works on at a time: as many as its server may have requests in flight.
 * Usable before the options are checked.
 */
export function concurrencyOf(options: unknown): number {
  const { requests } = objectOf(objectOf(options).in_flight);
  return typeof requests === 'number' && requests >= 1 && requests <= 256 ? Math.floor(requests) : DEFAULT_REQUESTS;
}

/** The variable that holds the token of a package's server. Usable before the options are checked. */
export function tokenVariableOf(options: unknown): string | undefined {
  const { token_env: name } = objectOf(objectOf(options).server);
  return typeof name === 'string' && TOKEN_VARIABLE_PATTERN.test(name) ? name : undefined;
}

/**
 * The address to which a package's token is sent in clear, readable to everybody in between; undefined if there is no
 * token, or it is encrypted or stays on this machine. Usable before the options are checked.
 */
export function clearTokenAddress(options: unknown): string | undefined {
  const { address, tls, token_env: variable, token_file: file } = objectOf(objectOf(options).server);
  if (typeof address !== 'string' || tls !== undefined || (variable ?? file) === undefined) return undefined;
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\]):/.test(address) ? undefined : address;
}

/** The package with the operator's address in its manifest, if there is one for `<id>@<revision>` or for `<id>`. */
export function withAddress(found: FoundPackage, servers: ReadonlyMap<string, string>): FoundPackage {
  const { manifest } = found;
  if (!isRemote(manifest.family)) return found;
  const address = servers.get(`${manifest.id}@${manifest.revision}`) ?? servers.get(manifest.id);
  if (address === undefined) return found;
  const options = objectOf(manifest.options);
  const server = { ...objectOf(options.server), address };
  return { ...found, manifest: { ...manifest, options: { ...options, server } } };
}

/** Reads `<model>=<host:port>, …`, a model being `<id>` or `<id>@<revision>`, or nothing. */
export function parseServers(
  text: string,
): { readonly value: ReadonlyMap<string, string> } | { readonly problem: string } {
  const servers = new Map<string, string>();
  for (const entry of text === '' ? [] : text.split(',')) {
    const [, model, address] = /^\s*([a-z0-9][a-z0-9._-]*(?:@[a-z0-9][a-z0-9._-]*)?)\s*=\s*(\S+)\s*$/.exec(entry) ?? [];
    if (model === undefined || address === undefined || !ADDRESS_PATTERN.test(address)) {
      return { problem: `must be <model>=<host>:<port>,…, not '${entry.trim()}'` };
    }
    if (servers.has(model)) return { problem: `names '${model}' twice` };
    servers.set(model, address);
  }
  return { value: servers };
}

function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
