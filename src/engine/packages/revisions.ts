/**
 * The revisions of models that are served, and what state each is in. A package that appears in the folder becomes a revision; one that changes
 * becomes a new generation of it, which takes over when an engine has loaded it, so that the old one serves until then; one that
 * disappears serves the jobs that it has and is then unloaded.
 */

import type { CostProfile } from '../cost-profile.ts';
import type { ModelRevision, ModelStatus } from '../engine.ts';
import type { EngineLogger } from '../logger.ts';
import { defaultRevision } from './default-revision.ts';
import { byCodeUnits, type Manifest } from './manifest.ts';
import type { FoundPackage } from './scan.ts';

/** One generation of one revision. */
export interface Revision {
  /** Unique for the life of the service: `<id>@<revision>#<generation>`. */
  readonly key: string;
  /** `<id>@<revision>`. */
  readonly name: string;
  readonly folder: string;
  readonly manifest: Manifest;
  readonly signature: string;
  /** `broken` cannot be loaded at all; `failed` is tried again at times. */
  state: 'loading' | 'ready' | 'failed' | 'broken' | 'disabled';
  /** Whether an engine has loaded it and its canary was right, ever. */
  proven: boolean;
  /** Measured by the engine that loaded it last; undefined before. */
  profile: CostProfile | undefined;
  /** It has failed, but may not the next time: those who wait for its first decision wait on. */
  undecided: boolean;
  /** Loads that failed in a row, and why the last one did. */
  failures: number;
  problems: readonly string[];
  /** Grows with every engine that ends while it loads it, until one has loaded it. */
  blame: number;
  /** Accepted jobs that are not over. */
  jobs: number;
  /** No longer served: unloaded as soon as it has no jobs. */
  retired: boolean;
}

/** A revision that no engine has loaded; `generation` tells it from others of its name. */
export function createRevision({ manifest, folder, problems, signature }: FoundPackage, generation: number): Revision {
  const name = `${manifest.id}@${manifest.revision}`;
  return {
    key: `${name}#${generation}`,
    name,
    folder,
    manifest,
    signature,
    state: problems.length > 0 ? 'broken' : manifest.disabled ? 'disabled' : 'loading',
    proven: false,
    undecided: false,
    profile: undefined,
    failures: 0,
    problems: [],
    blame: 0,
    jobs: 0,
    retired: false,
  };
}

/** The revisions. */
export interface Revisions {
  /** Takes note of the packages that are there now. */
  apply(packages: readonly FoundPackage[]): void;
  /** For callers, cached: in code-unit order. */
  models(): readonly ModelRevision[];
  /** The generation that serves now; undefined if the revision is unknown. */
  find(model: string, revision: string): Revision | undefined;
  /** The generations that engines should have loaded; those that failed most come last. */
  wanted(): readonly Revision[];
  /** An engine has loaded it and its canary was right. */
  succeeded(revision: Revision): void;
  /** No engine can load it. */
  failed(revision: Revision, problems: readonly string[]): void;
  /** Counts a job that begins or ends. */
  count(revision: Revision, change: 1 | -1): void;
}

/** `onRetired` is called when a generation is no longer served and has no jobs; `onUnavailable` when it stops serving with jobs left. */
export function createRevisions(
  logger: EngineLogger,
  onRetired: (revision: Revision) => void,
  onUnavailable: (revision: Revision) => void,
): Revisions {
  const serving = new Map<string, Revision>();
  /** Changed packages that are to take over. */
  const successors = new Map<string, Revision>();
  let generations = 0;
  let published: readonly ModelRevision[] | undefined;

  const create = (found: FoundPackage): Revision => createRevision(found, ++generations);

  const retire = (revision: Revision): void => {
    revision.retired = true;
    if (revision.jobs === 0) onRetired(revision);
  };

  const replace = (next: Revision): void => {
    const previous = serving.get(next.name);
    serving.set(next.name, next);
    successors.delete(next.name);
    published = undefined;
    if (previous !== undefined) retire(previous);
  };

  const consider = (found: FoundPackage): void => {
    const name = `${found.manifest.id}@${found.manifest.revision}`;
    const current = serving.get(name);
    const successor = successors.get(name);
    if ((successor ?? current)?.signature === found.signature) return;
    if (successor !== undefined) {
      successors.delete(name);
      retire(successor);
    }
    // Changed back before the change was loaded.
    if (current?.signature === found.signature) return;
    const next = create(found);
    const fields = { model: name, folder: found.folder };
    if (next.state === 'broken') logger.error({ ...fields, problems: found.problems }, 'a model package is broken');
    else logger.info(fields, current === undefined ? 'found a model package' : 'a model package has changed');
    if (current?.state === 'ready' && next.state !== 'disabled') {
      // A broken or half-copied change must not end what works.
      successors.set(name, next);
      return;
    }
    replace(next);
  };

  const publish = (): readonly ModelRevision[] => {
    const all = [...serving.values()].sort((a, b) => byCodeUnits(a.name, b.name));
    const defaults = new Map<string, string | undefined>();
    for (const [id, group] of Map.groupBy(all, ({ manifest }) => manifest.id)) {
      const claims = group.map(({ manifest, state, proven }) => ({
        revision: manifest.revision,
        claims: manifest.isDefault,
        standing: proven ? ('proven' as const) : state === 'broken' ? ('broken' as const) : ('valid' as const),
      }));
      defaults.set(id, defaultRevision(claims));
    }
    return all
      .map(({ manifest: { id, revision, ownedBy, limits }, state }) => ({
        id,
        revision,
        isDefault: defaults.get(id) === revision,
        ownedBy,
        status: statusOf(state),
        limits,
      }))
      .sort((a, b) => byCodeUnits(a.id, b.id) || byCodeUnits(a.revision, b.revision));
  };

  return {
    apply(packages) {
      const present = new Set(packages.map(({ manifest }) => `${manifest.id}@${manifest.revision}`));
      for (const found of packages) consider(found);
      for (const [name, revision] of serving) {
        if (present.has(name)) continue;
        logger.info({ model: name }, 'a model package is gone');
        serving.delete(name);
        const successor = successors.get(name);
        successors.delete(name);
        retire(revision);
        if (successor !== undefined) retire(successor);
      }
      published = undefined;
    },
    models() {
      published ??= publish();
      return published;
    },
    find: (model, revision) => serving.get(`${model}@${revision}`),
    wanted: () =>
      [...serving.values(), ...successors.values()]
        .filter(({ state }) => state !== 'broken' && state !== 'disabled')
        .sort((a, b) => a.failures - b.failures),
    succeeded(revision) {
      if (revision.retired) return;
      if (revision.state !== 'ready') logger.info({ model: revision.name }, 'a model is ready');
      revision.state = 'ready';
      revision.proven = true;
      revision.undecided = false;
      revision.failures = 0;
      revision.blame = 0;
      published = undefined;
      if (successors.get(revision.name) === revision) replace(revision);
    },
    failed(revision, problems) {
      if (revision.retired) return;
      // Said once, however often it is tried again in vain.
      const news = revision.failures++ === 0 || problems.join() !== revision.problems.join();
      revision.problems = problems;
      revision.state = 'failed';
      published = undefined;
      logger[news ? 'error' : 'debug']({ model: revision.name, problems }, 'a model cannot be served');
      onUnavailable(revision);
    },
    count(revision, change) {
      revision.jobs += change;
      if (revision.retired && revision.jobs === 0) onRetired(revision);
    },
  };
}

function statusOf(state: Revision['state']): ModelStatus {
  if (state === 'ready' || state === 'disabled') return state;
  return 'unavailable';
}
