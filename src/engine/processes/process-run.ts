/** One process of an engine slot, and what the slot knows of it. */
import type { EngineSettings } from '../options.ts';
import type { Revision } from '../packages/revisions.ts';
import type { Death } from './deaths.ts';
import type { EngineProcess } from './engine-process.ts';
import { processUsage } from './process-usage.ts';

/** A process from its start to its end. */
export interface Tenancy {
  readonly process: EngineProcess;
  /** Keys of the revisions that were given to it to load. */
  readonly tried: Set<string>;
  readonly since: number;
  /** Whether decisions are sent to it. Not before everything that was wanted has been tried: a load holds up all that comes after it. */
  serving: boolean;
  /** What it has loaded and nobody has been told of, since it does not serve yet. */
  untold: Revision[];
  /** Whether it has loaded anything. */
  served: boolean;
  /** It is let go: its end is no news. */
  dismissed: boolean;
  over: boolean;
  /** Its CPU time when it was first found without progress though it could run. */
  suspectedAt: number | undefined;
  /** Resolves when all that was wanted has been tried, after a start. */
  begun: Promise<void>;
  /** Resolves when the process has ended. */
  readonly ended: PromiseWithResolvers<void>;
}

/** Why a process that makes no progress ends. */
export const STUCK: Death = { cause: 'stuck', reason: 'killed: it made no progress' };

/** A process that was started just now. */
export function createTenancy(process: EngineProcess): Tenancy {
  return {
    process,
    tried: new Set(),
    since: performance.now(),
    serving: false,
    untold: [],
    served: false,
    dismissed: false,
    over: false,
    suspectedAt: undefined,
    begun: Promise.resolve(),
    ended: Promise.withResolvers<void>(),
  };
}

/** Whether the process has work, can have a core and makes no progress. */
export function isStuck(
  tenancy: Tenancy,
  { loadStuckAfterMs, stuckAfterMs }: Pick<EngineSettings, 'loadStuckAfterMs' | 'stuckAfterMs'>,
): boolean {
  const { loading, milliseconds } = tenancy.process.silence();
  const bound = loading ? loadStuckAfterMs : stuckAfterMs;
  const usage = milliseconds > bound ? processUsage(tenancy.process.pid ?? 0) : undefined;
  if (usage?.runnable !== true) {
    tenancy.suspectedAt = undefined;
    return milliseconds > bound;
  }
  // It would run if it got a core. Killing it would cost the machine more than it has: only CPU time without progress counts.
  tenancy.suspectedAt ??= usage.cpu;
  return usage.cpu - tenancy.suspectedAt > bound / 4;
}
