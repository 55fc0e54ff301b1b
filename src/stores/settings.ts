/** Reads from the environment where catalogs and keys are stored. */
import { resolve } from 'node:path';

/** Redis in one of its three shapes, or the embedded store. Addresses are `host:port`. */
export type StoreSettings = { readonly kind: 'sqlite'; readonly folder: string } | RedisSettings;

/** How to reach Redis. `url` also carries the user, the password, TLS and the database for Sentinel and Cluster. */
export interface RedisSettings {
  readonly kind: 'redis';
  readonly url: URL;
  readonly topology:
    | { readonly kind: 'plain' }
    | { readonly kind: 'sentinel'; readonly sentinels: readonly HostPort[]; readonly name: string }
    | { readonly kind: 'cluster'; readonly nodes: readonly HostPort[] };
  /** Redis replicas that must have a write before it is confirmed; 0 waits for none. */
  readonly waitReplicas: number;
}

/** A server's address; an IPv6 host is without brackets. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** The name of the embedded store's file, within the data folder. */
export const DATABASE_FILE = 'umpire.db';

/** The data folder of the embedded store if UMPIRE_DATA_DIR names none. */
const DEFAULT_DATA_DIR = 'data';

/**
 * Reads REDIS_URL, REDIS_SENTINELS, REDIS_SENTINEL_NAME, REDIS_CLUSTER, UMPIRE_REDIS_WAIT_REPLICAS and
 * UMPIRE_DATA_DIR. Without any address of Redis the store is the embedded one. `problems` names each setting that is
 * wrong, and never contains a password.
 */
export function parseStoreSettings(env: Readonly<Record<string, string | undefined>>): {
  readonly value: StoreSettings;
  readonly problems: readonly string[];
} {
  const problems: string[] = [];
  const read = (name: string): string | undefined => {
    const text = env[name]?.trim();
    return text === '' ? undefined : text;
  };
  const addresses = (name: string): readonly HostPort[] | undefined => {
    const text = read(name);
    if (text === undefined) return undefined;
    const list = parseHostPorts(text);
    if ('value' in list) return list.value;
    problems.push(`${name}: ${list.problem}`);
    return [];
  };

  const url = read('REDIS_URL');
  const sentinels = addresses('REDIS_SENTINELS');
  const nodes = addresses('REDIS_CLUSTER');
  const name = read('REDIS_SENTINEL_NAME');
  const wait = read('UMPIRE_REDIS_WAIT_REPLICAS') ?? '0';
  const parsed = parseRedisUrl(url ?? 'redis://localhost:6379');
  const address = 'value' in parsed ? parsed.value : undefined;
  if ('problem' in parsed) problems.push(`REDIS_URL: ${parsed.problem}`);
  if (sentinels !== undefined && nodes !== undefined)
    problems.push('REDIS_SENTINELS and REDIS_CLUSTER exclude each other');
  if ((sentinels === undefined) !== (name === undefined)) {
    problems.push('REDIS_SENTINELS and REDIS_SENTINEL_NAME belong together');
  }
  if (nodes !== undefined && /[1-9]/.test(address?.pathname ?? ''))
    problems.push('REDIS_URL: a cluster has database 0 alone');
  if (!/^\d$/.test(wait)) problems.push('UMPIRE_REDIS_WAIT_REPLICAS: must be a whole number from 0 to 9');
  const redis = url !== undefined || sentinels !== undefined || nodes !== undefined;
  if (!redis && wait !== '0') problems.push('UMPIRE_REDIS_WAIT_REPLICAS: needs Redis');
  if (!redis || address === undefined) {
    return { value: { kind: 'sqlite', folder: read('UMPIRE_DATA_DIR') ?? DEFAULT_DATA_DIR }, problems };
  }
  const topology: RedisSettings['topology'] =
    nodes !== undefined
      ? { kind: 'cluster', nodes }
      : sentinels !== undefined
        ? { kind: 'sentinel', sentinels, name: name ?? '' }
        : { kind: 'plain' };
  return { value: { kind: 'redis', url: address, topology, waitReplicas: Number(wait) }, problems };
}

/** A name of the store for its operator: the file, or the address of Redis without user and password. */
export function describeStore(settings: StoreSettings): string {
  if (settings.kind === 'sqlite') return resolve(settings.folder, DATABASE_FILE);
  const { url, topology } = settings;
  const list = (places: readonly HostPort[]): string => places.map(({ host, port }) => `${host}:${port}`).join(',');
  if (topology.kind === 'cluster') return `the Redis cluster at ${list(topology.nodes)}`;
  if (topology.kind === 'sentinel') {
    return `Redis '${topology.name}' by the Sentinels at ${list(topology.sentinels)}, database ${url.pathname.slice(1) || '0'}`;
  }
  return `${url.protocol}//${url.hostname}:${url.port || '6379'}/${url.pathname.slice(1) || '0'}`;
}

type Parsed<T> = { readonly value: T } | { readonly problem: string };

function parseRedisUrl(text: string): Parsed<URL> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const sound =
    url !== undefined && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && /^\/?\d*$/.test(url.pathname);
  return sound ? { value: url } : { problem: "must be 'redis://…' or 'rediss://…' with an optional database number" };
}

/** `host:port`, with an IPv6 host in brackets. */
const HOST_PORT = /^(?:\[(?<six>[0-9A-Fa-f:.]+)\]|(?<name>[^:\s[\]]+)):(?<port>\d{1,5})$/;

function parseHostPorts(text: string): Parsed<readonly HostPort[]> {
  const list: HostPort[] = [];
  for (const item of text.split(/[\s,]+/).filter((each) => each !== '')) {
    const groups = HOST_PORT.exec(item)?.groups;
    const host = groups?.six ?? groups?.name;
    const port = Number(groups?.port);
    if (host === undefined || port < 1 || port > 65_535)
      return { problem: 'must be a list of host:port, separated by commas' };
    list.push({ host, port });
  }
  return { value: list };
}
