/** Every setting, from the environment, read once. All problems are reported together, each naming its variable. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BODY_SETTINGS, type BodyRates, bodyRatesOf } from './domain/body-limits.ts';
import { NO_PROXIES, parseTrustedProxies, type TrustedProxies } from './domain/client-address.ts';
import { LIMIT_SETTINGS, type LimitSettings, limitsOf } from './domain/limit-settings.ts';
import { nearest } from './domain/nearest.ts';
import {
  oneOf,
  optional,
  type Parsed,
  readSettings,
  type Settings,
  seconds,
  setting,
  text,
  whole,
} from './domain/settings.ts';
import { usableCores } from './engine/options.ts';
import { parseSelection } from './engine/packages/selection.ts';
import { parseServers, TOKEN_VARIABLE_PATTERN } from './engine/packages/servers.ts';
import { LOG_LEVELS, type LogLevel } from './logger.ts';
import type { CatalogBounds } from './stores/catalog-store.ts';
import { parseStoreSettings, type StoreSettings } from './stores/settings.ts';
import { HOLDING_SETTINGS, type HoldingSettings, holdingsOf, REPLACED_SETTINGS } from './wire/holdings/settings.ts';
import { parseOrigins } from './wire/http/cors.ts';
import { readTlsFiles } from './wire/listener/http1-server.ts';
import { parseTraceSettings, type TraceSettings } from './wire/traces/settings.ts';

/** Every setting, read and checked: times in milliseconds, sizes in bytes. */
export interface Config {
  /** A port, or the path of a Unix socket. */
  readonly port: number | string;
  readonly host: string;
  readonly modelsDir: string;
  /** Where engines keep what they would compute again; '' if there is no data folder. */
  readonly cacheDir: string;
  /** The models of the folder, or single revisions of them, that are served; all of them if the list is empty. */
  readonly models: readonly string[];
  /** Addresses of inference servers by model. */
  readonly inferenceServers: ReadonlyMap<string, string>;
  /** How many engine processes there are in all. */
  readonly engines: number;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly logLevel: LogLevel;
  readonly reflection: boolean;
  /** The port for metrics, or the path of a Unix socket; undefined for none. */
  readonly metricsPort: number | string | undefined;
  /** Whether the port opens at the start or once decisions can be made. */
  readonly listenWhen: 'started' | 'ready';
  /** What one address, and all addresses together, may hold of the port. */
  readonly holdings: HoldingSettings;
  /** Milliseconds between SIGTERM and the last accepted connection. */
  readonly drainDelay: number;
  /** Milliseconds that accepted requests then have to finish. */
  readonly drainGrace: number;
  /** Bytes of resident memory above which an engine process is replaced. */
  readonly engineMemory: number;
  /** Bytes of resident memory of the serving process near which it refuses work. */
  readonly memory: number;
  readonly store: StoreSettings;
  /** The most that one owner may store. */
  readonly catalogBounds: CatalogBounds;
  readonly limits: LimitSettings;
  /** Whether decisions may be made without a key. */
  readonly anonymous: boolean;
  /** The origins whose pages may decide from a browser. */
  readonly corsOrigins: readonly string[];
  readonly bodies: BodyRates;
  readonly trustedProxies: TrustedProxies;
  /** How traces are made; undefined where none are. Where they go is read by OpenTelemetry itself. */
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

/** Where models come from. The operator's command reads no other settings. */
export const MODEL_SETTINGS = {
  UMPIRE_MODELS_DIR: setting('models', text, 'The folder of model packages', () => MODELS_DIR),
  UMPIRE_MODELS: setting(
    'all',
    (names) => parseSelection(names.replace(/^all$/, '')),
    'The models that are served: `umpire-mini,minilm-l6`, or single revisions such as `umpire-mini@r11`, or `all`',
  ),
  UMPIRE_INFERENCE_SERVERS: setting(
    '',
    parseServers,
    'Addresses of inference servers that replace those in model packages: `<model>=<host>:<port>,…`',
  ),
} satisfies Settings;

const portNumber = whole(0, 65_535);

function portOrPath(text: string): Parsed<number | string> {
  return text.startsWith('/') ? { value: text } : portNumber(text);
}

/** All settings with their defaults and parsers, in the order of docs/settings.md. */
const TABLE = {
  PORT: setting(
    '8080',
    portOrPath,
    'The port for REST, gRPC and Connect; 0 takes any free port. Or the path of a Unix socket, which its owner and its group may use',
  ),
  HOST: setting('::', text, 'The address to listen on: `::` is all, of IPv6 and IPv4; `127.0.0.1` this machine alone'),
  TLS_CERT: optional(
    text,
    'A PEM file with the certificate chain. With `TLS_KEY`, the port speaks TLS. Both are read again on SIGHUP',
  ),
  TLS_KEY: optional(text, "A PEM file with the certificate's private key"),
  LOG_LEVEL: setting('info', oneOf(LOG_LEVELS), '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`'),
  ...MODEL_SETTINGS,
  UMPIRE_ENGINES: setting(
    'the cores',
    whole(1, 256),
    'Number of engine processes. Each loads every ready model',
    usableCores,
  ),
  UMPIRE_ENGINE_MEMORY: setting(
    '450',
    whole(100, 1_000_000, MIB),
    'MiB of resident memory above which an engine is replaced once its work is done; if its models alone take more, a quarter more than they take',
  ),
  UMPIRE_MEMORY: setting(
    '1024',
    whole(128, 1_000_000, MIB),
    'MiB of resident memory of the serving process. Near this limit, idle connections are closed and work is refused',
  ),
  UMPIRE_LISTEN_WHEN: setting(
    'started',
    oneOf(['started', 'ready']),
    '`ready` opens the port only once the models are loaded, for proxies that do not ask `/health/ready`',
  ),
  ...HOLDING_SETTINGS,
  UMPIRE_REFLECTION: setting('off', oneOf(['on', 'off']), '`on` serves gRPC server reflection'),
  UMPIRE_METRICS_PORT: optional(
    portOrPath,
    'A separate port for `GET /metrics` in the Prometheus text format and for the probes `/health/live` and `/health/ready`. Off unless set; 0 takes any free port, a path a Unix socket',
  ),
  UMPIRE_DRAIN_DELAY: setting(
    '2',
    seconds,
    'Seconds after SIGTERM in which new connections are still accepted, while `/health/ready` already answers 503',
  ),
  UMPIRE_DRAIN_GRACE: setting('30', seconds, 'Seconds that accepted requests then have to finish'),
  // The store's settings depend on one another: `parseStoreSettings` reads them.
  UMPIRE_DATA_DIR: setting(
    'data',
    text,
    'The folder of the embedded store of catalogs and keys, used without Redis, and of what engines keep to start faster',
  ),
  REDIS_URL: optional(text, '`redis://…` or `rediss://…`: catalogs, keys and limits are kept there'),
  REDIS_SENTINELS: optional(text, 'Sentinels as `host:port,…`. User, password and TLS come from `REDIS_URL`'),
  REDIS_SENTINEL_NAME: optional(text, 'The name under which the Sentinels know the primary'),
  REDIS_CLUSTER: optional(text, 'Nodes of a Redis Cluster as `host:port,…`'),
  UMPIRE_REDIS_WAIT_REPLICAS: setting('0', text, 'Redis replicas that must have a write before it is confirmed'),
  UMPIRE_CATALOGS_PER_OWNER: setting('1000', whole(1, 1_000_000), 'Catalogs that one owner may have'),
  UMPIRE_CATALOG_MIB_PER_OWNER: setting(
    '16',
    whole(1, 1_000_000, MIB),
    "MiB that the choices of all of one owner's catalogs may take together",
  ),
  UMPIRE_ANONYMOUS: setting('on', oneOf(['on', 'off']), '`off`: a decision needs a key, too'),
  ...LIMIT_SETTINGS,
  ...BODY_SETTINGS,
  UMPIRE_TRUSTED_PROXIES: setting(
    '',
    parseTrustedProxies,
    'Addresses or CIDR ranges of proxies whose `X-Forwarded-For` is trusted; `unix` is whoever comes by a Unix socket',
    () => NO_PROXIES,
  ),
  UMPIRE_CORS_ORIGINS: setting(
    '',
    parseOrigins,
    'Origins such as `https://app.example`, separated by commas, whose pages may do from a browser what needs no key',
  ),
};

/** All settings, in the order of docs/settings.md, which is written from them. */
export const SETTINGS: readonly Setting[] = Object.entries(TABLE).map(([name, { default: otherwise, meaning }]) => ({
  name,
  default: otherwise,
  meaning,
}));

/** Variables of commands that call a service. A server, in whose environment they may stand too, ignores them. */
export const CALLER_VARIABLES: readonly string[] = ['UMPIRE_KEY', 'UMPIRE_OTHER_KEY'];

/**
 * Reads the settings. Tokens for models at servers (`UMPIRE_TOKEN_…`) are for the engine process of the package that
 * names them, and are not read here. @throws ConfigError with every problem, an unknown `UMPIRE_` variable included.
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const env = withoutServiceLinks(environment);
  const known = new Set([...SETTINGS.map((setting) => setting.name), ...CALLER_VARIABLES]);
  const problems = Object.keys(env)
    .filter((name) => name.startsWith('UMPIRE_') && !known.has(name) && !TOKEN_VARIABLE_PATTERN.test(name))
    .map((name) => {
      const replacement = REPLACED_SETTINGS[name];
      if (replacement !== undefined) return `${name}: there is no such setting any more; ${replacement}`;
      const near = nearest(name, [...known]);
      return `${name}: there is no such setting${near === undefined ? '' : `; did you mean ${near}?`}`;
    });
  const settings = readSettings(TABLE, env);
  const { value } = settings;
  const modelsDir = value.UMPIRE_MODELS_DIR;
  if (!existsSync(modelsDir) || !statSync(modelsDir).isDirectory())
    problems.push(`UMPIRE_MODELS_DIR: '${modelsDir}' is not a folder`);
  else problems.push(...noPackageOf(value.UMPIRE_MODELS, modelsDir));
  const tls = readTlsFiles(value.TLS_CERT, value.TLS_KEY);
  const store = parseStoreSettings(env);
  const traces = parseTraceSettings(env);
  if (typeof value.PORT === 'string' && tls.value !== undefined)
    problems.push('PORT: a Unix socket speaks no TLS, which is for the proxy in front of it');
  problems.push(...[settings, tls, store, traces].flatMap((read) => read.problems));

  const config: Config = {
    port: value.PORT,
    host: value.HOST,
    modelsDir,
    cacheDir: cacheDirOf(store.value, env.UMPIRE_DATA_DIR?.trim() ?? ''),
    models: value.UMPIRE_MODELS,
    inferenceServers: value.UMPIRE_INFERENCE_SERVERS,
    engines: value.UMPIRE_ENGINES,
    tls: tls.value,
    logLevel: value.LOG_LEVEL,
    metricsPort: value.UMPIRE_METRICS_PORT,
    reflection: value.UMPIRE_REFLECTION === 'on',
    listenWhen: value.UMPIRE_LISTEN_WHEN,
    holdings: holdingsOf(value),
    drainDelay: value.UMPIRE_DRAIN_DELAY,
    drainGrace: value.UMPIRE_DRAIN_GRACE,
    engineMemory: value.UMPIRE_ENGINE_MEMORY,
    memory: value.UMPIRE_MEMORY,
    store: store.value,
    catalogBounds: { catalogs: value.UMPIRE_CATALOGS_PER_OWNER, bytes: value.UMPIRE_CATALOG_MIB_PER_OWNER },
    limits: limitsOf(value),
    anonymous: value.UMPIRE_ANONYMOUS === 'on',
    corsOrigins: value.UMPIRE_CORS_ORIGINS,
    bodies: bodyRatesOf(value),
    trustedProxies: value.UMPIRE_TRUSTED_PROXIES,
    traces: traces.value,
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/** The folder for what engines keep: in that of the embedded store, or in one that is named beside Redis. */
function cacheDirOf(store: StoreSettings, named: string): string {
  const folder = store.kind === 'sqlite' ? store.folder : named;
  return folder === '' ? '' : resolve(folder, 'cache');
}

/** The problem of names of which none has a folder: such a service would wait for ever to become ready. */
function noPackageOf(names: readonly string[], modelsDir: string): readonly string[] {
  if (names.length === 0 || names.some((name) => existsSync(join(modelsDir, name.replace('@', '/'))))) return [];
  const there = readdirSync(modelsDir).join(', ') || 'none';
  return [`UMPIRE_MODELS: no package of ${names.join(', ')} is in ${modelsDir}; there are ${there}`];
}

/** Variables that Kubernetes adds to every container for a service called `umpire` or `umpire-…`: no settings. */
const SERVICE_LINK = /_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?$/;

function withoutServiceLinks(env: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  const settings = Object.entries(env).filter(
    ([name, value]) => !SERVICE_LINK.test(name) && !(name.endsWith('_PORT') && /^(tcp|udp):\/\//.test(value ?? '')),
  );
  return Object.fromEntries(settings);
}
