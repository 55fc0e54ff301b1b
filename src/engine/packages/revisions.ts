/**
 * The revisions of models that are served, and what state each is in. A package that appears in the folder becomes a
 * revision; one that changes becomes a new generation of it, which takes over when an engine has loaded it, so that the
 * old one serves until then; one that disappears serves the jobs that it has and is then unloaded. A cascade is loaded
 * nowhere: its state follows from that of its steps. One file: a class and its states.
 */
import type { CostProfile } from '../cost-profile.ts';
import type { ModelRevision, ModelStatus } from '../engine.ts';
import type { EngineLogger } from '../options.ts';
import { type Cascade, commonLanguages, narrowest, stepsAmong } from './cascade.ts';
import { byName, type Manifest } from './manifest.ts';
import type { FoundPackage } from './scan.ts';

/** The record of a generation; only `Revisions` changes it. */
interface RevisionRecord {
  /** Unique for the life of the service: `<id>@<revision>#<generation>`. */
  readonly key: string;
  /** `<id>@<revision>`. */
  readonly name: string;
  readonly folder: string;
  readonly manifest: Manifest;
  /** The options of a cascade, and the steps as they are served now, in their order; none of any other model. */
  readonly cascade: Cascade | undefined;
  steps: readonly Revision[];
  readonly signature: string;
  /** `broken` cannot be loaded at all; `failed` is tried again from time to time. */
  state: 'loading' | 'ready' | 'failed' | 'broken' | 'disabled';
  /** Whether an engine has ever loaded it and its canary was right; of a cascade, whether all steps were ready once. */
  proven: boolean;
  /** Measured by the engine that loaded it last; undefined until one has. */
  profile: CostProfile | undefined;
  /** It has failed, but may succeed the next time: whoever waits for its first decision goes on waiting. */
  undecided: boolean;
  /** Loads that failed in a row, and why the last one did. */
  failures: number;
  problems: readonly string[];
  /** Grows with every engine that ends while loading it, until one has loaded it. */
  blame: number;
  /** Accepted jobs that are not over. */
  jobs: number;
  /** No longer served: unloaded as soon as it has no jobs. */
  retired: boolean;
}

/** One generation of one revision. */
export type Revision = Readonly<RevisionRecord>;

/** A revision that no engine has loaded; `generation` tells it from others of its name. */
export function createRevision(found: FoundPackage, generation: number): Revision {
  const { manifest, cascade, folder, problems, signature } = found;
  const name = `${manifest.id}@${manifest.revision}`;
  return {
    key: `${name}#${generation}`,
    name,
    folder,
    manifest,
    cascade,
    steps: [],
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

/** The model of the guides and examples. */
const USUAL_MODEL = 'umpire-mini';

/** A model that is measured as too slow for its limits this many times in a row is too slow for good. */
const CERTAIN_FAILURES = 3;

/** What `Revisions` tells about a generation. */
export interface RevisionEvents {
  /** It is no longer served and has no jobs. */
  retired(revision: Revision): void;
  /** It stops serving with jobs left. */
  unavailable(revision: Revision): void;
}

/** The revisions that are served, none at first. */
export class Revisions {
  readonly #logger: EngineLogger;
  readonly #events: RevisionEvents;
  readonly #serving = new Map<string, Revision>();
  /** Changed packages that are to take over. */
  readonly #successors = new Map<string, Revision>();
  #generations = 0;
  /** The revision that each model's plain name meant when that was last logged. */
  #defaults: ReadonlyMap<string, string> = new Map();
  /** Revisions that claim a plain name which another one has, when that was last logged. */
  #outdone: ReadonlySet<string> = new Set();
  /** The list for callers; undefined if something has changed since it was made. */
  #published: readonly ModelRevision[] | undefined;

  constructor(logger: EngineLogger, events: RevisionEvents) {
    this.#logger = logger;
    this.#events = events;
  }

  /** Takes note of the packages that are there now. */
  apply(packages: readonly FoundPackage[]): void {
    const present = new Set(packages.map(({ manifest }) => `${manifest.id}@${manifest.revision}`));
    for (const found of packages) this.#consider(found);
    for (const [name, revision] of this.#serving) {
      if (present.has(name)) continue;
      this.#logger.info({ model: name }, 'a model package is gone');
      this.#serving.delete(name);
      const successor = this.#successors.get(name);
      this.#successors.delete(name);
      this.#retire(revision);
      if (successor !== undefined) this.#retire(successor);
    }
    this.#published = undefined;
  }

  /** The revisions as callers see them, in the order of their names; cached. */
  models(): readonly ModelRevision[] {
    this.#published ??= this.#publish();
    return this.#published;
  }

  /** The generation that serves now; undefined if the revision is unknown. */
  find(model: string, revision: string): Revision | undefined {
    return this.#serving.get(`${model}@${revision}`);
  }

  /**
   * The generations that engines should have loaded: those that failed most last, and of the others first what most
   * decisions wait for, and then the model that most callers use.
   */
  wanted(): readonly Revision[] {
    return [...this.#serving.values(), ...this.#successors.values()]
      .filter(({ state, cascade }) => state !== 'broken' && state !== 'disabled' && cascade === undefined)
      .sort((a, b) => a.failures - b.failures || b.jobs - a.jobs || usualFirst(a) - usualFirst(b));
  }

  /** An engine has loaded and measured it, and its canary was right; of a cascade, enough of its steps are ready. */
  succeeded(revision: RevisionRecord, profile: CostProfile | undefined): void {
    revision.profile = profile;
    if (revision.retired) return;
    if (revision.state !== 'ready') this.#logger.info({ model: revision.name }, 'a model is ready');
    revision.state = 'ready';
    revision.proven ||= revision.steps.every(({ state }) => state === 'ready');
    revision.undecided = false;
    revision.failures = 0;
    revision.blame = 0;
    this.#published = undefined;
    if (this.#successors.get(revision.name) === revision) this.#replace(revision);
  }

  /**
   * No engine can load it, or too many steps of a cascade cannot be asked. `isMeasured`: it failed in a measurement,
   * which may turn out differently when the machine is less busy.
   */
  failed(revision: RevisionRecord, problems: readonly string[], isMeasured = false): void {
    if (revision.retired) return;
    revision.undecided = isMeasured && revision.state !== 'ready' && revision.failures + 1 < CERTAIN_FAILURES;
    // Logged as an error once, however often loading it fails.
    const news = revision.failures++ === 0 || problems.join() !== revision.problems.join();
    revision.problems = problems;
    revision.state = 'failed';
    this.#published = undefined;
    this.#logger[news ? 'error' : 'debug']({ model: revision.name, problems }, 'a model cannot be served');
    this.#events.unavailable(revision);
  }

  /** An engine ended while loading it. Returns whether it has failed now, because its blame has reached `fatal`. */
  blamed(revision: RevisionRecord, points: number, fatal: number): boolean {
    revision.blame += points;
    if (revision.blame < fatal) return false;
    revision.blame = 0;
    return true;
  }

  /** Counts a job that begins or ends. */
  count(revision: RevisionRecord, change: 1 | -1): void {
    revision.jobs += change;
    if (revision.retired && revision.jobs === 0) this.#events.retired(revision);
  }

  /** Brings the state of each cascade in line with that of its steps. */
  #settle(): void {
    const serving = [...this.#serving.values()];
    const defaults = defaultsOf(serving);
    const candidates = serving.map((of) => ({
      ...of.manifest,
      of,
      isDefault: defaults.get(of.manifest.id) === of.manifest.revision,
      isBroken: of.state === 'broken',
    }));
    for (const revision of [...serving, ...this.#successors.values()] as readonly RevisionRecord[]) {
      const { cascade, state } = revision;
      if (cascade === undefined || state === 'broken' || state === 'disabled') continue;
      const names = cascade.steps.map(({ model }) => model);
      const { found, problems } = stepsAmong(names, candidates);
      revision.steps = found.map(({ of }) => of);
      // Without an answer of the first step, only a cascade that may leave out steps goes on.
      const needed = cascade.ifAway === 'answer' ? revision.steps : revision.steps.slice(0, 1);
      const isServed = needed.some((step) => step.state === 'ready');
      const away = isServed ? [] : needed.map((step) => `the step ${step.name} is not ready`);
      const wrong = problems.length > 0 ? problems : away;
      if (wrong.length === 0) this.succeeded(revision, undefined);
      else if (state === 'loading' && problems.length === 0 && needed.some((step) => step.state === 'loading'))
        continue;
      else if (state !== 'failed' || wrong.join() !== revision.problems.join()) this.failed(revision, wrong);
    }
  }

  #publish(): readonly ModelRevision[] {
    this.#settle();
    const models = publish([...this.#serving.values()]);
    const defaults = new Map(models.filter(({ isDefault }) => isDefault).map(({ id, revision }) => [id, revision]));
    for (const [model, revision] of defaults) {
      const before = this.#defaults.get(model);
      if (revision === before) continue;
      this.#logger.info({ model: `${model}@${revision}`, before }, `the plain name ${model} means this revision now`);
    }
    this.#defaults = defaults;
    this.#noteOutdone();
    return models;
  }

  /** Logs which revisions work and claim a plain name, but do not have it. */
  #noteOutdone(): void {
    const outdone = new Set<string>();
    for (const { name, manifest, state } of this.#serving.values()) {
      const named = this.#defaults.get(manifest.id);
      if (state !== 'ready' || !manifest.isDefault || named === undefined || named === manifest.revision) continue;
      outdone.add(name);
      if (this.#outdone.has(name)) continue;
      const keeps = `${manifest.id}@${named}`;
      this.#logger.info({ model: name, named: keeps }, `${name} claims the plain name, which ${keeps} has`);
    }
    this.#outdone = outdone;
  }

  #retire(revision: RevisionRecord): void {
    revision.retired = true;
    if (revision.jobs === 0) this.#events.retired(revision);
  }

  #replace(next: Revision): void {
    const previous = this.#serving.get(next.name);
    this.#serving.set(next.name, next);
    this.#successors.delete(next.name);
    this.#published = undefined;
    if (previous !== undefined) this.#retire(previous);
  }

  #consider(found: FoundPackage): void {
    const name = `${found.manifest.id}@${found.manifest.revision}`;
    const current = this.#serving.get(name);
    const successor = this.#successors.get(name);
    if ((successor ?? current)?.signature === found.signature) return;
    if (successor !== undefined) {
      this.#successors.delete(name);
      this.#retire(successor);
    }
    // The package was changed back before the change was loaded.
    if (current?.signature === found.signature) return;
    const next = createRevision(found, ++this.#generations);
    const fields = { model: name, folder: found.folder };
    if (next.state === 'broken')
      this.#logger.error({ ...fields, problems: found.problems }, 'a model package is broken');
    else this.#logger.info(fields, current === undefined ? 'found a model package' : 'a model package has changed');
    if (current?.state === 'ready' && next.state !== 'disabled') {
      // A broken or half-copied change must not end what works.
      this.#successors.set(name, next);
      return;
    }
    this.#replace(next);
  }
}

function usualFirst({ manifest }: Revision): number {
  return manifest.id === USUAL_MODEL ? 0 : 1;
}

function publish(serving: readonly Revision[]): readonly ModelRevision[] {
  const all = serving.toSorted(
    (a, b) => byName(a.manifest.id, b.manifest.id) || byName(a.manifest.revision, b.manifest.revision),
  );
  const defaults = defaultsOf(all);
  return all.map(({ manifest, cascade, steps, state }) => ({
    id: manifest.id,
    revision: manifest.revision,
    isDefault: defaults.get(manifest.id) === manifest.revision,
    ownedBy: manifest.ownedBy,
    languages: manifest.languages ?? commonLanguages(steps.map((step) => step.manifest.languages)),
    status: statusOf(state),
    limits: cascade === undefined ? manifest.limits : narrowest(steps.map((step) => step.manifest.limits)),
  }));
}

/** The revision that each model's plain name means. */
function defaultsOf(serving: readonly Revision[]): ReadonlyMap<string, string | undefined> {
  const defaults = new Map<string, string | undefined>();
  for (const [id, group] of Map.groupBy(serving, ({ manifest }) => manifest.id)) {
    const claims = group.map(({ manifest, state, proven }) => ({
      revision: manifest.revision,
      claims: manifest.isDefault,
      standing: proven ? ('proven' as const) : state === 'broken' ? ('broken' as const) : ('valid' as const),
    }));
    defaults.set(id, defaultRevision(claims));
  }
  return defaults;
}

function statusOf(state: Revision['state']): ModelStatus {
  if (state === 'ready' || state === 'disabled') return state;
  return 'unavailable';
}

/** What the choice depends on. */
export interface RevisionClaim {
  readonly revision: string;
  /** Its manifest says `"default": true`. */
  readonly claims: boolean;
  /**
   * `broken`: it cannot be loaded. `proven`: it has been loaded and its canary was right, whatever has become of it
   * since.
   */
  readonly standing: 'proven' | 'valid' | 'broken';
}

/**
 * The last of the proven revisions that claim the name, or of all proven ones if none does: a new revision takes the
 * name when it has shown that it works. While none is proven, the valid ones take their place; while none is valid, all
 * do. `r10` comes after `r9`.
 */
export function defaultRevision(revisions: readonly RevisionClaim[]): string | undefined {
  const proven = revisions.filter(({ standing }) => standing === 'proven');
  const valid = revisions.filter(({ standing }) => standing !== 'broken');
  const candidates = [proven, valid, revisions].find(({ length }) => length > 0) ?? [];
  const claiming = candidates.filter(({ claims }) => claims);
  return (claiming.length > 0 ? claiming : candidates)
    .map(({ revision }) => revision)
    .sort(byName)
    .at(-1);
}
