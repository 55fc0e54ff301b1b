/**
 * All groups: one runs the local models, and each served revision of the family `remote` has one of its own with a
 * single process, so that a server which is slow or away holds up nothing but its own model. That process reads texts,
 * asks the server, and works on as many decisions at a time as the package allows for the server.
 */
import type { EngineStats, InferenceStats, ScoreJob } from '../engine.ts';
import type { EngineSettings } from '../options.ts';
import { isRemote } from '../packages/manifest.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import { clearTokenAddress, concurrencyOf, tokenVariableOf } from '../packages/servers.ts';
import { EngineGroup } from './engine-group.ts';
import { type Pool, Tally } from './pool.ts';

// Shorter than for local models: a server should be used soon after it has come back, and trying it takes hardly any
// computing here.
const LONGEST_RETRY_MS = 5000;
const RETRY_MS = 250;

/** The groups of all models that are served, none at first. */
export class EngineGroups {
  readonly #settings: EngineSettings;
  readonly #revisions: Revisions;
  readonly #tally = new Tally();
  #local: EngineGroup | undefined;
  readonly #remote = new Map<string, EngineGroup>();
  /** The ends of groups that serve no longer. */
  readonly #ends = new Set<Promise<void>>();
  #state: 'open' | 'closed' = 'open';

  constructor(settings: EngineSettings, revisions: Revisions) {
    this.#settings = settings;
    this.#revisions = revisions;
  }

  /** Starts the processes of the local models. */
  start(): void {
    this.#local = new EngineGroup({
      settings: this.#settings,
      revisions: this.#revisions,
      tally: this.#tally,
      names: Array.from({ length: this.#settings.engines }, (_, index) => `engine-${index}`),
      concurrency: 1,
      serves: ({ manifest }) => !isRemote(manifest.family),
    });
  }

  get all(): readonly EngineGroup[] {
    return [this.#local ?? [], ...this.#remote.values()].flat();
  }

  /** Loads revisions that are served and not loaded yet; starts a group for every one that needs one. */
  rollOut(): void {
    if (this.#state === 'closed') return;
    for (const revision of this.#revisions.wanted()) {
      if (!isRemote(revision.manifest.family) || this.#remote.has(revision.key)) continue;
      this.#remote.set(revision.key, this.#startRemote(revision));
    }
    this.#local?.rollOut();
  }

  /** Unloads a revision that is no longer served and has no jobs. */
  retired({ key }: Revision): void {
    this.#local?.unload(key);
    const remote = this.#remote.get(key);
    this.#remote.delete(key);
    if (remote !== undefined) this.#close(remote);
  }

  /** The pool for a job, once `start` has been called. A model that no process serves is refused by any pool. */
  poolOf({ model, revision }: Pick<ScoreJob, 'model' | 'revision'>): Pool {
    const key = this.#revisions.find(model, revision)?.key ?? '';
    return (this.#remote.get(key) ?? (this.#local as EngineGroup)).pool;
  }

  /** The pool of the local models; undefined if there are others, which do not wait for it. */
  get onlyPool(): Pool | undefined {
    return this.#remote.size > 0 ? undefined : this.#local?.pool;
  }

  stats(): EngineStats {
    const backlogs = this.all.map((group) => group.backlog());
    return {
      ...structuredClone({ ...this.#tally }),
      queue: {
        jobs: backlogs.reduce((sum, { jobs }) => sum + jobs, 0),
        cost: backlogs.reduce((sum, { cost }) => sum + cost, 0),
      },
      engines: (this.#local?.slots ?? []).flatMap(({ process }) => process ?? []).map(({ resident }) => ({ resident })),
      inference: [...this.#remote.values()].flatMap(statsOf),
    };
  }

  /** Ends all groups, and waits for those that are already ending. */
  async close(): Promise<void> {
    this.#state = 'closed';
    for (const group of this.all) this.#close(group);
    await Promise.all(this.#ends);
  }

  #startRemote(revision: Revision): EngineGroup {
    const { name, key, manifest } = revision;
    const token = tokenVariableOf(manifest.options);
    const address = clearTokenAddress(manifest.options);
    const { modelRetryMs, longestRetryMs, logger } = this.#settings;
    if (address !== undefined) {
      logger.warn({ model: name, address }, 'a token is sent in clear: give its server tls');
    }
    return new EngineGroup({
      settings: {
        ...this.#settings,
        modelRetryMs: Math.min(modelRetryMs, RETRY_MS),
        longestRetryMs: Math.min(longestRetryMs, LONGEST_RETRY_MS),
        variables: token === undefined ? [] : [token],
      },
      revisions: this.#revisions,
      tally: this.#tally,
      names: [name],
      concurrency: concurrencyOf(manifest.options),
      serves: (each) => each.key === key,
    });
  }

  #close(group: EngineGroup): void {
    const end = group.close().finally(() => this.#ends.delete(end));
    this.#ends.add(end);
  }
}

function statsOf({ slots, inferenceCalls }: EngineGroup): readonly InferenceStats[] {
  return slots.map(({ name, concurrency, process }) => {
    const [inFlight, resident] = [process?.inFlight ?? 0, process?.resident ?? 0];
    return { model: name, concurrency, inFlight, resident, ...inferenceCalls };
  });
}
