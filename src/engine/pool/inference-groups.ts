/**
 * The processes that ask inference servers: one for each served revision of the family `remote`, with a pool of its
 * own, so that a server which is slow or away holds up nothing but its own model. The process reads texts, asks the
 * server, and works on as many decisions at a time as the package allows for the server.
 */
import type { CallOutcome, InferenceCalls, InferenceStats } from '../engine.ts';
import type { EngineSettings } from '../options.ts';
import { isRemote } from '../packages/manifest.ts';
import type { Revision, Revisions } from '../packages/revisions.ts';
import { clearTokenAddress, concurrencyOf, tokenVariableOf } from '../packages/servers.ts';
import { createEngineGroup, type EngineGroup, type GroupObserver } from './engine-group.ts';

/** The groups of all remote models that are served. */
export interface InferenceGroups {
  /** Starts a group for every revision that needs one. */
  rollOut(): void;
  /** Ends the group of a revision that is no longer served and has no jobs. */
  retired(revision: Revision): void;
  /** The group that serves a revision; undefined if none does. */
  of(revision: Revision): EngineGroup | undefined;
  readonly all: readonly EngineGroup[];
  stats(): readonly InferenceStats[];
  /** Ends all groups, including those that are already ending. */
  close(): Promise<void>;
}

interface Member {
  readonly name: string;
  readonly concurrency: number;
  readonly group: EngineGroup;
  calls: InferenceCalls;
}

// Shorter than for local models: a server should be used soon after it has come back, and trying it takes hardly any
// computing here.
const LONGEST_RETRY_MS = 5000;
const RETRY_MS = 250;

/**
 * No groups yet. `watcher` is told of every process that ended or was replaced, and of the jobs that were given up with
 * one.
 */
export function createInferenceGroups(
  settings: EngineSettings,
  revisions: Revisions,
  watcher: Pick<GroupObserver, 'replaced' | 'ended' | 'abandoned'>,
): InferenceGroups {
  const members = new Map<string, Member>();
  const closing = new Set<Promise<void>>();
  let closed = false;

  const create = (revision: Revision): Member => {
    const { options } = revision.manifest;
    const concurrency = concurrencyOf(options);
    const token = tokenVariableOf(options);
    const address = clearTokenAddress(options);
    if (address !== undefined) {
      settings.logger.warn({ model: revision.name, address }, 'a token is sent in clear: give its server tls');
    }
    const group = createEngineGroup({
      settings: {
        ...settings,
        modelRetryMs: Math.min(settings.modelRetryMs, RETRY_MS),
        longestRetryMs: Math.min(settings.longestRetryMs, LONGEST_RETRY_MS),
        variables: token === undefined ? [] : [token],
      },
      concurrency,
      revisions,
      names: [revision.name],
      serves: ({ key }) => key === revision.key,
      observer: {
        finished() {},
        ...watcher,
        calls: (calls) => {
          member.calls = sumOf(member.calls, calls);
        },
      },
    });
    const member: Member = { name: revision.name, concurrency, group, calls: NO_CALLS };
    return member;
  };

  const close = (group: EngineGroup): void => {
    const done = group.close().finally(() => closing.delete(done));
    closing.add(done);
  };

  return {
    rollOut() {
      if (closed) return;
      for (const revision of revisions.wanted()) {
        if (!isRemote(revision.manifest.family) || members.has(revision.key)) continue;
        members.set(revision.key, create(revision));
      }
    },
    retired({ key }) {
      const member = members.get(key);
      members.delete(key);
      if (member !== undefined) close(member.group);
    },
    of: ({ key }) => members.get(key)?.group,
    get all() {
      return [...members.values()].map(({ group }) => group);
    },
    stats: () =>
      [...members.values()].map(({ name, concurrency, group, calls }) => {
        const process = group.slots[0]?.process;
        return {
          model: name,
          concurrency,
          inFlight: process?.inFlight ?? 0,
          resident: process?.resident ?? 0,
          ...calls,
        };
      }),
    async close() {
      closed = true;
      for (const { group } of members.values()) close(group);
      await Promise.all(closing);
    },
  };
}

const NO_CALLS: InferenceCalls = {
  outcomes: { answered: 0, unavailable: 0, refused: 0, malformed: 0, timed_out: 0, canceled: 0 },
  rows: 0,
  retries: 0,
  seconds: 0,
};

function sumOf(a: InferenceCalls, b: InferenceCalls): InferenceCalls {
  const outcomes = { ...a.outcomes };
  for (const outcome of Object.keys(outcomes) as CallOutcome[]) outcomes[outcome] += b.outcomes[outcome];
  return { outcomes, rows: a.rows + b.rows, retries: a.retries + b.retries, seconds: a.seconds + b.seconds };
}
