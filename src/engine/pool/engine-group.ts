/**
 * Engine processes that serve the same models: a slot for each, the pool before them, and the loading of models into
 * them. What they do is counted for `Engine.stats`.
 */
import type { EngineStats, InferenceCalls } from '../engine.ts';
import type { EngineSettings } from '../options.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import { createSparePlace, EngineSlot } from '../processes/engine-slot.ts';
import type { Death } from '../processes/recycling.ts';
import type { JobResult } from '../worker/messages.ts';
import type { Backlog } from './fair-queue.ts';
import { createMemoryWarning, ModelLoading } from './model-loading.ts';
import { Pool } from './pool.ts';

/** Is told what the processes of a group do. */
export interface GroupObserver {
  finished(result: JobResult): void;
  /** A process was replaced because it was too large. */
  replaced(): void;
  /** A process ended, whatever the reason. */
  ended(death: Death): void;
  /** A job was given up because its engine ended while working on it. */
  abandoned(death: Death): void;
  calls(calls: InferenceCalls): void;
}

/** What a group is made of. */
export interface GroupOptions {
  readonly settings: EngineSettings;
  /** Jobs that one process works on at a time: more than 1 only where they wait for a server. */
  readonly concurrency: number;
  readonly revisions: Revisions;
  /** One process each, by the names that the log gives them. */
  readonly names: readonly string[];
  /** Whether the group serves a revision. */
  serves(revision: Revision): boolean;
  readonly observer: GroupObserver;
}

/** Processes that serve the same models, with the queue in front of them. */
export interface EngineGroup {
  readonly pool: Pool;
  readonly slots: readonly EngineSlot[];
  /** Loads revisions that are served and not loaded yet. */
  rollOut(): void;
  /** Tries failed models again now. */
  retry(): void;
  unload(key: string): void;
  /** What waits, and the milliseconds that it will take in one process. */
  backlog(): Pick<Backlog, 'jobs' | 'cost'>;
  /** Whether a live process has made the canary decision of at least one model, and what waits is being done. */
  ready(): boolean;
  /** See `EngineSlot.check`. */
  check(heldUp: number): void;
  /** Refuses new jobs, finishes the accepted ones, ends the processes. */
  close(): Promise<void>;
}

/** How long a process may take to end once it has nothing to do, milliseconds. */
const ENDING_GRACE = 5000;

/** Creates a group and starts its processes. */
export function createEngineGroup({
  settings,
  concurrency,
  revisions,
  names,
  serves,
  observer,
}: GroupOptions): EngineGroup {
  const slots: EngineSlot[] = [];
  const pool = new Pool({ settings, revisions, slots, abandoned: (death) => observer.abandoned(death) });
  const wanted = (): readonly Revision[] => revisions.wanted().filter(serves);
  const loading = new ModelLoading({ settings, revisions, wanted, slots, served: () => pool.dispatch() });
  const spare = createSparePlace();
  const warnOfMemory = createMemoryWarning(settings);
  for (const name of names) {
    slots.push(
      new EngineSlot({
        name,
        settings,
        concurrency,
        spare,
        hooks: {
          wanted: () => loading.wanted(),
          known: wanted,
          turn: (revision) => loading.turn(revision),
          misfit: (process, revision) => loading.misfit(process, revision),
          loaded: (process, revision, outcome) => loading.loaded(process, revision, outcome),
          rollOut: () => void loading.rollOut(),
          preparing: (process) => pool.preparing(process),
          unready: (key, problems) => loading.unready(key, problems),
          calls: (calls) => observer.calls(calls),
          passable: () => pool.dispatch(),
          serves: warnOfMemory,
          replaced: () => observer.replaced(),
          finished: (process, job, result, occupied) => {
            observer.finished(result);
            pool.finished(process, job, result, occupied);
          },
          lost: (process, jobs, death) => {
            observer.ended(death);
            pool.lost(process, jobs, death);
          },
        },
      }),
    );
  }
  return {
    pool,
    slots,
    rollOut: () => void loading.rollOut(),
    retry: () => loading.retry(),
    unload(key) {
      loading.forget(key);
      for (const slot of slots) slot.unload(key);
    },
    backlog() {
      const { jobs, cost } = pool.backlog();
      return { jobs, cost: cost / concurrency };
    },
    ready: () =>
      slots.some(({ process }) => process !== undefined && process.models.size > 0) &&
      pool.standstill() < settings.unreadyAfterMs,
    check(heldUp) {
      for (const slot of slots) slot.check(heldUp);
    },
    async close() {
      loading.close();
      await pool.close();
      await Promise.all(slots.map((slot) => slot.close(ENDING_GRACE)));
    },
  };
}

/** What the processes of all groups have done since the start. */
export interface Tally {
  /** A job is over; only one that was scored counts. */
  finished(result: JobResult): void;
  /** A process was replaced because it was too large. */
  replaced(): void;
  /** A process ended, whatever the reason. */
  ended(death: Death): void;
  /** A job was given up because its engine ended while working on it. */
  abandoned(death: Death): void;
  /** The counts so far, with the state that the caller knows. */
  read(now: Pick<EngineStats, 'queue' | 'engines' | 'inference'>): EngineStats;
}

/** Starts to count, at zero. */
export function createTally(): Tally {
  let busy = 0;
  let replacements = 0;
  let restarts = 0;
  const abandoned = { stuck: 0, crashed: 0 };
  let encoded = 0;
  let cached = 0;
  return {
    finished(result) {
      if (result.kind !== 'scored') return;
      busy += result.tokenize + result.infer;
      encoded += result.encoded;
      cached += result.probabilities.length - result.encoded;
    },
    replaced() {
      replacements += 1;
    },
    ended({ cause }) {
      if (cause !== 'drained') restarts += 1;
    },
    abandoned({ cause }) {
      if (cause === 'stuck' || cause === 'crashed') abandoned[cause] += 1;
    },
    read: (now) => ({
      ...now,
      busy,
      replacements,
      restarts,
      abandoned: { ...abandoned },
      choices: { encoded, cached },
    }),
  };
}
