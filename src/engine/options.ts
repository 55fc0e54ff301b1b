/** The settings of the engine and their defaults; and the logger that it is given. */
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

/** Milliseconds that a decision may take whose caller sets no deadline. */
export const DEFAULT_DEADLINE = 10_000;

/** The settings of an engine that have defaults. Times in milliseconds, sizes in bytes. */
const DEFAULTS = {
  /** A folder in which engines keep what they would compute again, see worker/cache.ts; '' for none. */
  cacheDir: '',
  /** Which packages of the folder are served: `<id>` or `<id>@<revision>`; all of them if the list is empty. */
  models: [] as readonly string[],
  /** A package whose largest legal request takes longer than this on one core is refused. */
  largestRequestMs: 30_000,
  /** One whose largest legal request takes longer than this is served, and the log says so. */
  defaultDeadlineMs: DEFAULT_DEADLINE,
  /** An engine process whose resident memory is larger than this is replaced. */
  engineMemoryBytes: 450 * 2 ** 20,
  /** An engine younger than this is not replaced for its size: if it grew that fast, so would its successor. */
  recycleAfterMs: 30_000,
  /** Memory for the cached choice vectors in each engine. */
  choiceCacheBytes: 32 * 2 ** 20,
  /** Jobs that may be queued, and the bytes that their texts may take. */
  queueJobs: 8192,
  queueBytes: 64 * 2 ** 20,
  /** An engine that has work and shows no progress for this long is killed, unless the machine gave it no CPU time. */
  stuckAfterMs: 5000,
  /**
   * While decisions wait, `ready` is false when no engine has finished anything for this long: half of a decision's
   * default deadline.
   */
  unreadyAfterMs: 5000,
  /** How often the models folder is scanned, in addition to being watched. */
  scanIntervalMs: 10_000,
  /** The first wait before a failed model is tried again; it doubles with each further failure. */
  modelRetryMs: 1000,
  /** The longest such wait. */
  longestRetryMs: 60_000,
  /** The wait before a model is tried again whose largest request took more than twice `largestRequestMs` here. */
  tooSlowRetryMs: 600_000,
  /** How much the engines' niceness exceeds the parent's. */
  niceness: 5,
  /** Addresses `host:port` of inference servers by `<id>@<revision>` or `<id>`: they replace those in packages. */
  inferenceServers: new Map() as ReadonlyMap<string, string>,
  /** The file that an engine process runs. Only tests set it. */
  workerEntry: fileURLToPath(new URL('./worker/main.ts', import.meta.url)),
  /** Variables of the server's environment that an engine process gets in addition to the usual ones. */
  variables: [] as readonly string[],
};

/** Settings of an engine; those without defaults first. */
export interface EngineOptions extends Partial<Readonly<typeof DEFAULTS>> {
  /** The folder of the model packages. */
  readonly modelsDir: string;
  /** How many engine processes there are. */
  readonly engines: number;
  readonly logger: EngineLogger;
}

/** The options with every default filled in. */
export type EngineSettings = Required<EngineOptions>;

/** Fills in the defaults. */
export function engineSettings(options: EngineOptions): EngineSettings {
  return { ...DEFAULTS, ...options };
}

/** Quota and period in microseconds of processor time, in cgroups of version 2 and of version 1. */
const QUOTAS = [['cpu.max'], ['cpu/cpu.cfs_quota_us', 'cpu/cpu.cfs_period_us']];

/**
 * Whole cores, at least one: those of the machine and of the process' affinity, or fewer by the quota of its container.
 * A share of a core beyond whole ones would only have two engines stop each other.
 */
export function usableCores(root = '/sys/fs/cgroup'): number {
  const files = QUOTAS.find(([file]) => existsSync(`${root}/${file}`)) ?? [];
  const [quota, period] = files.flatMap((file) => readFileSync(`${root}/${file}`, 'utf8').trim().split(' '));
  const allowed = Number(quota) / Number(period);
  const cores = availableParallelism();
  return allowed > 0 ? Math.max(1, Math.min(cores, Math.floor(allowed))) : cores;
}

/**
 * Where the engine writes what operators must know; pino's loggers fit. It is never given an input, an instruction or a
 * choice.
 */
export interface EngineLogger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
