/** Every setting, from the environment, read once. All problems are reported together, each naming its variable. */
import { existsSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { BodyRates } from './domain/body-limits.ts';
import { BODY_SETTINGS, parseBodyRates } from './domain/body-settings.ts';
import { noProxies, parseTrustedProxies, type TrustedProxies } from './domain/client-address.ts';
import { type LimitSettings, parseLimitSettings } from './domain/limit-settings.ts';
import { parseSelection } from './engine/packages/selection.ts';
import { parseServers } from './engine/packages/servers.ts';
import { LOG_LEVELS, type LogLevel } from './logger.ts';
import type { CatalogBounds } from './stores/catalog-store.ts';
import { parseStoreSettings, type StoreSettings } from './stores/settings.ts';
import { HOLDING_SETTINGS, type HoldingSettings, parseHoldingSettings } from './wire/holdings/settings.ts';
import { readTlsFiles } from './wire/listener/tls-settings.ts';
import { parseTraceSettings, TRACE_SETTINGS, type TraceSettings } from './wire/traces/settings.ts';

export interface Config {
  readonly port: number;
  readonly host: string;
  readonly modelsDir: string;
  /** The models of the folder that are served, or single revisions of them; all if there are none. */
  readonly models: readonly string[];
  /** Addresses of inference servers by model. */
  readonly inferenceServers: ReadonlyMap<string, string>;
  /** Engine processes in all. */
  readonly engines: number;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly logLevel: LogLevel;
  readonly reflection: boolean;
  /** The port for metrics; undefined for none. */
  readonly metricsPort: number | undefined;
  /** Whether the port opens at the start or once decisions can be made. */
  readonly listenWhen: 'started' | 'ready';
  /** What one address, and all, may hold of the port. */
  readonly holdings: HoldingSettings;
  /** Milliseconds between SIGTERM and the last accepted connection. */
  readonly drainDelay: number;
  /** Milliseconds that accepted requests then have. */
  readonly drainGrace: number;
  /** Bytes of resident memory above which an engine is recycled. */
  readonly engineMemory: number;
  /** Bytes of resident memory of the serving process near which it refuses work. */
  readonly memory: number;
  readonly store: StoreSettings;
  /** What one owner may have. */
  readonly catalogBounds: CatalogBounds;
  readonly limits: LimitSettings;
  readonly bodies: BodyRates;
  readonly trustedProxies: TrustedProxies;
  /** Where traces go; undefined for nowhere. */
  readonly traces: TraceSettings | undefined;
}

/** The environment cannot be used. The message lists every problem. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`the settings cannot be used:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.problems = problems;
  }
}

/** A setting as the documentation lists it. */
export interface Setting {
  readonly name: string;
  /** The default, as one would write it; empty for none. */
  readonly default: string;
  readonly meaning: string;
}

const MODELS_DIR = fileURLToPath(new URL('../models', import.meta.url));
const MIB = 1024 * 1024;

/** All settings, in the order of the README's table, which a test compares with this list. */
export const SETTINGS: readonly Setting[] = [
  { name: 'PORT', default: '8080', meaning: 'The port for REST, gRPC and Connect. 0 takes a free one' },
  { name: 'HOST', default: '0.0.0.0', meaning: 'The address to listen on' },
  {
    name: 'TLS_CERT',
    default: '',
    meaning: 'A PEM file with the certificate chain. With `TLS_KEY` the port speaks TLS; read again on SIGHUP',
  },
  { name: 'TLS_KEY', default: '', meaning: "A PEM file with the certificate's private key" },
  { name: 'LOG_LEVEL', default: 'info', meaning: '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`' },
  { name: 'UMPIRE_MODELS_DIR', default: 'models', meaning: 'The folder of model packages' },
  {
    name: 'UMPIRE_MODELS',
    default: 'all',
    meaning: 'Which of them are served: `umpire-mini,minilm-l6`, or single revisions as `umpire-mini@r5`, or `all`',
  },
  {
    name: 'UMPIRE_INFERENCE_SERVERS',
    default: '',
    meaning: 'Addresses of inference servers in place of those in model packages: `<model>=<host>:<port>,…`',
  },
  { name: 'UMPIRE_ENGINES', default: 'the cores', meaning: 'Engine processes in all. Each loads every ready model' },
  {
    name: 'UMPIRE_ENGINE_MEMORY',
    default: '450',
    meaning: 'MiB of resident memory above which an engine is replaced once its work is done',
  },
  {
    name: 'UMPIRE_MEMORY',
    default: '1024',
    meaning: 'MiB of resident memory of the serving process; near it idle connections are closed and work is refused',
  },
  {
    name: 'UMPIRE_LISTEN_WHEN',
    default: 'started',
    meaning: '`ready` opens the port only once the models are loaded: for proxies that do not ask `/health/ready`',
  },
  ...HOLDING_SETTINGS,
  { name: 'UMPIRE_REFLECTION', default: 'off', meaning: '`on` serves gRPC server reflection' },
  {
    name: 'UMPIRE_METRICS_PORT',
    default: '',
    meaning:
      'A port of its own for `GET /metrics` in the Prometheus text format and for probes: `/health/live`, `/health/ready`. Off unless set; 0 takes a free one',
  },
  {
    name: 'UMPIRE_DRAIN_DELAY',
    default: '2',
    meaning: 'Seconds after SIGTERM in which new connections are still accepted, while `/health/ready` already says no',
  },
  { name: 'UMPIRE_DRAIN_GRACE', default: '30', meaning: 'Seconds that accepted requests then have to finish' },
  {
    name: 'UMPIRE_DATA_DIR',
    default: 'data',
    meaning: 'The folder of the embedded store of catalogs and keys, used without Redis',
  },
  { name: 'REDIS_URL', default: '', meaning: '`redis://…` or `rediss://…`: catalogs, keys and limits are kept there' },
  {
    name: 'REDIS_SENTINELS',
    default: '',
    meaning: 'Sentinels as `host:port,…`; user, password and TLS come from `REDIS_URL`',
  },
  { name: 'REDIS_SENTINEL_NAME', default: '', meaning: 'The name under which the Sentinels know the primary' },
  { name: 'REDIS_CLUSTER', default: '', meaning: 'Nodes of a Redis Cluster as `host:port,…`' },
  {
    name: 'UMPIRE_REDIS_WAIT_REPLICAS',
    default: '0',
    meaning: 'Replicas that must have a write before it is confirmed',
  },
  { name: 'UMPIRE_CATALOGS_PER_OWNER', default: '1000', meaning: 'Catalogs that one owner may have' },
  {
    name: 'UMPIRE_CATALOG_MIB_PER_OWNER',
    default: '16',
    meaning: "MiB that the choices of all of one owner's catalogs may have together",
  },
  {
    name: 'UMPIRE_RATE_ANONYMOUS',
    default: '200/s, burst 1000',
    meaning:
      'Requests of one address without a key: `50/s`, `600/m, burst 100` or `off`, which also stops limiting bad keys',
  },
  {
    name: 'UMPIRE_RATE_KEY',
    default: '1000/s, burst 5000',
    meaning: 'Requests of one key, unless it has a limit of its own',
  },
  { name: 'UMPIRE_CONCURRENCY_ANONYMOUS', default: '128', meaning: 'Decisions of one address at one time, or `off`' },
  { name: 'UMPIRE_CONCURRENCY_KEY', default: '512', meaning: 'Decisions of one key at one time, or `off`' },
  { name: 'UMPIRE_QUOTA_ANONYMOUS', default: 'off', meaning: 'Decisions of one address a day (UTC), or `off`' },
  { name: 'UMPIRE_QUOTA_KEY', default: 'off', meaning: 'Decisions of one key a day (UTC), or `off`' },
  ...BODY_SETTINGS,
  {
    name: 'UMPIRE_TRUSTED_PROXIES',
    default: '',
    meaning: 'Addresses or CIDR ranges of proxies whose `X-Forwarded-For` is believed',
  },
  ...TRACE_SETTINGS,
];

/** What commands that call a service read from their environment, which may be the server's. */
export const CALLER_VARIABLES: readonly string[] = ['UMPIRE_KEY', 'UMPIRE_OTHER_KEY'];

/** Reads the settings. @throws ConfigError with every problem, an unknown `UMPIRE_` variable included. */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const env = withoutServiceLinks(environment);
  const problems: string[] = [];
  const text = (name: string): string | undefined => env[name]?.trim() || undefined;
  const whole = (name: string, otherwise: number, least: number, most: number): number => {
    const value = text(name);
    if (value === undefined) return otherwise;
    const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
    if (number >= least && number <= most) return number;
    problems.push(`${name}: must be a whole number from ${least} to ${most}, not '${value}'`);
    return otherwise;
  };
  const seconds = (name: string, otherwise: number): number => {
    const value = text(name);
    const number = value === undefined ? otherwise : /^\d{1,4}(\.\d{1,3})?$/.test(value) ? Number(value) : Number.NaN;
    if (number <= 3600) return number * 1000;
    problems.push(`${name}: must be seconds from 0 to 3600, not '${value}'`);
    return otherwise * 1000;
  };
  const oneOf = <T extends string>(name: string, values: readonly T[], otherwise: T): T => {
    const value = text(name) ?? otherwise;
    const known = values.find((candidate) => candidate === value);
    if (known === undefined) problems.push(`${name}: must be one of ${values.join(', ')}, not '${value}'`);
    return known ?? otherwise;
  };

  const known = new Set([...SETTINGS.map((setting) => setting.name), ...CALLER_VARIABLES]);
  for (const name of Object.keys(env)) {
    if (name.startsWith('UMPIRE_') && !known.has(name)) problems.push(`${name}: there is no such setting`);
  }
  const modelsDir = text('UMPIRE_MODELS_DIR') ?? MODELS_DIR;
  if (!existsSync(modelsDir) || !statSync(modelsDir).isDirectory())
    problems.push(`UMPIRE_MODELS_DIR: '${modelsDir}' is not a folder`);
  const models = parseSelection((text('UMPIRE_MODELS') ?? 'all').replace(/^all$/, ''));
  if (typeof models === 'string') problems.push(`UMPIRE_MODELS: ${models}`);
  const inferenceServers = parseServers(text('UMPIRE_INFERENCE_SERVERS') ?? '');
  if (typeof inferenceServers === 'string') problems.push(`UMPIRE_INFERENCE_SERVERS: ${inferenceServers}`);
  const tls = readTlsFiles(text('TLS_CERT'), text('TLS_KEY'), problems);
  const store = parseStoreSettings(env);
  const limits = parseLimitSettings(env);
  const bodies = parseBodyRates(env);
  const holdings = parseHoldingSettings(env);
  const traces = parseTraceSettings(env);
  problems.push(...[store, limits, bodies, holdings, traces].flatMap((settings) => settings.problems));
  const proxies = text('UMPIRE_TRUSTED_PROXIES');
  const trustedProxies = proxies === undefined ? noProxies : parseTrustedProxies(proxies);
  if (typeof trustedProxies === 'string') problems.push(`UMPIRE_TRUSTED_PROXIES: ${trustedProxies}`);

  const config: Config = {
    port: whole('PORT', 8080, 0, 65_535),
    host: text('HOST') ?? '0.0.0.0',
    modelsDir,
    models: typeof models === 'string' ? [] : models,
    inferenceServers: typeof inferenceServers === 'string' ? new Map() : inferenceServers,
    engines: whole('UMPIRE_ENGINES', availableParallelism(), 1, 256),
    tls,
    logLevel: oneOf('LOG_LEVEL', LOG_LEVELS, 'info'),
    metricsPort: text('UMPIRE_METRICS_PORT') === undefined ? undefined : whole('UMPIRE_METRICS_PORT', 0, 0, 65_535),
    reflection: oneOf('UMPIRE_REFLECTION', ['on', 'off'], 'off') === 'on',
    listenWhen: oneOf('UMPIRE_LISTEN_WHEN', ['started', 'ready'], 'started'),
    holdings: holdings.value,
    drainDelay: seconds('UMPIRE_DRAIN_DELAY', 2),
    drainGrace: seconds('UMPIRE_DRAIN_GRACE', 30),
    engineMemory: whole('UMPIRE_ENGINE_MEMORY', 450, 100, 1_000_000) * MIB,
    memory: whole('UMPIRE_MEMORY', 1024, 128, 1_000_000) * MIB,
    store: store.value,
    catalogBounds: {
      catalogs: whole('UMPIRE_CATALOGS_PER_OWNER', 1000, 1, 1_000_000),
      bytes: whole('UMPIRE_CATALOG_MIB_PER_OWNER', 16, 1, 1_000_000) * 1024 * 1024,
    },
    limits: limits.value,
    bodies: bodies.value,
    trustedProxies: typeof trustedProxies === 'string' ? noProxies : trustedProxies,
    traces: traces.value,
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/** What Kubernetes adds to every container for a service that is called `umpire` or `umpire-…`. */
const SERVICE_LINK = /_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?$/;

function withoutServiceLinks(env: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  const settings = Object.entries(env).filter(
    ([name, value]) => !SERVICE_LINK.test(name) && !(name.endsWith('_PORT') && /^(tcp|udp):\/\//.test(value ?? '')),
  );
  return Object.fromEntries(settings);
}
