/** The settings of the engine and their defaults; and the logger that it is given. */
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

/** Milliseconds that a decision may take whose caller sets no deadline. */
export const DEFAULT_DEADLINE = 10_000;

/** Settings of an engine; all but the first three have defaults. Times in milliseconds, sizes in bytes. */
export interface EngineOptions {
  /** The folder of the model packages. */
  readonly modelsDir: string;
  /** How many engine processes there are. */
  readonly engines: number;
  readonly logger: EngineLogger;
  /** A folder in which engines keep what they would compute again, see worker/cache.ts; by default '', none. */
  readonly cacheDir?: string;
  /** Which packages of the folder are served: `<id>` or `<id>@<revision>`; all of them if the list is empty. */
  readonly models?: readonly string[];
  /** A package whose largest legal request takes longer than this on one core is refused. */
  readonly largestRequestMs?: number;
  /** One whose largest legal request takes longer than this is served, and the log says so. */
  readonly defaultDeadlineMs?: number;
  /** An engine process whose resident memory is larger than this is replaced. */
  readonly engineMemoryBytes?: number;
  /** An engine younger than this is not replaced for its size: if it grew that fast, so would its successor. */
  readonly recycleAfterMs?: number;
  /** Memory for the cached choice vectors in each engine. */
  readonly choiceCacheBytes?: number;
  /** Jobs that may be queued, and the bytes that their texts may take. */
  readonly queueJobs?: number;
  readonly queueBytes?: number;
  /** An engine that has work and shows no progress for this long is killed, unless the machine gave it no CPU time. */
  readonly stuckAfterMs?: number;
  /** The same while it loads a model. */
  readonly loadStuckAfterMs?: number;
  /**
   * While decisions wait, `ready` is false when no engine has finished anything for this long. The default is half of a
   * decision's default deadline.
   */
  readonly unreadyAfterMs?: number;
  /** How often the models folder is scanned, in addition to being watched. */
  readonly scanIntervalMs?: number;
  /** The first wait before a failed model is tried again; it doubles with each further failure. */
  readonly modelRetryMs?: number;
  /** The longest such wait. */
  readonly longestRetryMs?: number;
  /** The wait before a model is tried again whose largest request took more than twice `largestRequestMs` here. */
  readonly tooSlowRetryMs?: number;
  /** How much the engines' niceness exceeds the parent's. */
  readonly niceness?: number;
  /** Addresses `host:port` of inference servers by `<id>@<revision>` or `<id>`: they replace those in packages. */
  readonly inferenceServers?: ReadonlyMap<string, string>;
  /** The file that an engine process runs. Only tests set it. */
  readonly workerEntry?: string;
}

/** The options with every default filled in. */
export interface EngineSettings extends Required<EngineOptions> {
  /** Variables of the server's environment that an engine process gets in addition to the usual ones. */
  readonly variables: readonly string[];
}

/** Fills in the defaults. */
export function engineSettings(options: EngineOptions): EngineSettings {
  return {
    cacheDir: '',
    models: [],
    largestRequestMs: 30_000,
    defaultDeadlineMs: DEFAULT_DEADLINE,
    engineMemoryBytes: 450 * 2 ** 20,
    recycleAfterMs: 30_000,
    choiceCacheBytes: 32 * 2 ** 20,
    queueJobs: 8192,
    queueBytes: 64 * 2 ** 20,
    stuckAfterMs: 5000,
    loadStuckAfterMs: 60_000,
    unreadyAfterMs: 5000,
    scanIntervalMs: 10_000,
    modelRetryMs: 1000,
    longestRetryMs: 60_000,
    tooSlowRetryMs: 600_000,
    niceness: 5,
    inferenceServers: new Map(),
    workerEntry: fileURLToPath(new URL('./worker/main.ts', import.meta.url)),
    variables: [],
    ...options,
  };
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
