/**
 * What the operator's command shows about model packages: what there is, and whether a package works on this machine
 * and how fast.
 */
import { join } from 'node:path';
import { costAt } from '../cost-profile.ts';
import { jobCost, worstCost } from '../job-cost.ts';
import { type EngineOptions, engineSettings } from '../options.ts';
import { commonLanguages, narrowest, stepsAmong } from '../packages/cascade.ts';
import { type FamilyName, isRemote } from '../packages/manifest.ts';
import { createRevision, defaultRevision } from '../packages/revisions.ts';
import { type FoundPackage, readPackage, scanPackages } from '../packages/scan.ts';
import { straysOf } from '../packages/selection.ts';
import { tokenVariableOf, withAddress } from '../packages/servers.ts';
import { EngineProcess, LOAD_STUCK_AFTER } from '../processes/engine-process.ts';

/** A package as it lies in its folder: nothing of it was loaded. */
export interface ListedPackage {
  readonly id: string;
  readonly revision: string;
  readonly isDefault: boolean;
  /** The revision that has the plain name, where this one claims it without having it. */
  readonly outdoneBy: string | undefined;
  readonly family: FamilyName;
  readonly ownedBy: string;
  readonly languages: readonly string[];
  readonly disabled: boolean;
  readonly limits: FoundPackage['manifest']['limits'];
  /** Empty if the manifest is valid, the files are there, and so are the steps of a cascade. */
  readonly problems: readonly string[];
  /** The steps of a cascade as `<id>@<revision>`, in their order. */
  readonly steps: readonly string[];
}

/** Lists the packages of a folder. Throws if the folder cannot be read. */
export async function listPackages(modelsDir: string): Promise<readonly ListedPackage[]> {
  const found = await scanPackages(modelsDir);
  const listed = found.map(({ manifest, problems }): ListedPackage => {
    const siblings = found.filter((each) => each.manifest.id === manifest.id);
    const claims = siblings.map((each) => ({
      revision: each.manifest.revision,
      claims: each.manifest.isDefault,
      // Whether its canary is right is not known before it is loaded, so it is assumed.
      standing:
        each.problems.length > 0
          ? ('broken' as const)
          : each.manifest.disabled
            ? ('valid' as const)
            : ('proven' as const),
    }));
    const { id, revision, family, ownedBy, languages = [], disabled, limits } = manifest;
    const named = defaultRevision(claims);
    return {
      id,
      revision,
      isDefault: named === revision,
      outdoneBy: manifest.isDefault && named !== revision ? named : undefined,
      family,
      ownedBy,
      languages,
      disabled,
      limits,
      problems,
      steps: [],
    };
  });
  return listed.map((each, place) => withSteps(each, found[place]?.cascade, listed));
}

/** A package of a list with what follows from the other packages: a cascade's steps, and their languages and limits. */
function withSteps(
  listed: ListedPackage,
  cascade: FoundPackage['cascade'],
  all: readonly ListedPackage[],
): ListedPackage {
  if (cascade === undefined || listed.problems.length > 0) return listed;
  const names = cascade.steps.map(({ model }) => model);
  const { found, problems } = stepsListed(names, all);
  return {
    ...listed,
    // Its own list counts first, as it does where it is served.
    languages:
      listed.languages.length > 0 ? listed.languages : (commonLanguages(found.map(({ languages }) => languages)) ?? []),
    limits: narrowest(found.map(({ limits }) => limits)),
    problems: problems.map((each) => `model.json: ${each}`),
    steps: found.map(({ id, revision }) => `${id}@${revision}`),
  };
}

/** As `stepsAmong`, of a list. */
export function stepsListed(names: readonly string[], all: readonly ListedPackage[]) {
  return stepsAmong(
    names,
    all.map((each) => ({ ...each, isBroken: each.problems.length > 0 })),
  );
}

/** The names in the operator's addresses that no remote package has. Rejects if the folder cannot be read. */
export async function strayServers(
  modelsDir: string,
  servers: ReadonlyMap<string, string>,
): Promise<readonly string[]> {
  return straysOf(servers, await scanPackages(modelsDir));
}

/** How fast a package is, measured on one core of this machine or by an inference server; times in milliseconds. */
export interface PackageSpeed {
  /** Whether an inference server does the work. */
  readonly remote: boolean;
  /** Reading, verifying and loading it, its measurements and its canary decision. */
  readonly load: number;
  /** Decisions between 8 choices that are cached where the family caches them, by tokens of instruction and input. */
  readonly decisions: readonly { readonly tokens: number; readonly milliseconds: number }[];
  /** Encoding one choice of 8 tokens; 0 where choices are not encoded ahead. */
  readonly choice: number;
  /** The largest request that the limits allow. */
  readonly worst: number;
  /** Resident bytes of an engine process that has loaded this package alone. */
  readonly resident: number;
}

/** What a check found. */
export type PackageCheck =
  | { readonly kind: 'sound'; readonly speed: PackageSpeed }
  /** `tooLarge`: nothing is wrong but that its largest request takes too long here. */
  | { readonly kind: 'broken'; readonly problems: readonly string[]; readonly tooLarge?: boolean }
  /** Its manifest and files are sound; the rest is unknown, since its inference server cannot be asked. */
  | { readonly kind: 'server_away'; readonly problems: readonly string[] };

/**
 * Checks `<modelsDir>/<id>/<revision>`: verifies its files, loads it in a process of its own as the service would,
 * makes its canary decision and measures it. Never throws for what is wrong with the package. Of a cascade nothing is
 * loaded: its list entry says all.
 */
export async function checkPackage(
  options: Omit<EngineOptions, 'engines'>,
  id: string,
  revision: string,
): Promise<PackageCheck> {
  const settings = engineSettings({ ...options, engines: 1 });
  const inFolder = await readPackage(join(settings.modelsDir, id, revision), id, revision);
  const found = withAddress(inFolder, settings.inferenceServers);
  const remote = isRemote(found.manifest.family);
  if (found.problems.length > 0) return { kind: 'broken', problems: found.problems };

  let reason = '';
  const ignore = (): undefined => {};
  const token = tokenVariableOf(found.manifest.options);
  const variables = remote && token !== undefined ? [token] : [];
  const engine = new EngineProcess('check', { ...settings, variables }, 1, {
    wanted: () => [],
    turn: async () => ignore,
    loaded: ignore,
    unready: ignore,
    rollOut: ignore,
    serves: ignore,
    replaced: ignore,
    finished: ignore,
    passable: ignore,
    calls: ignore,
    gone(_, death) {
      reason = death.reason;
    },
  });
  const began = performance.now();
  const timer = setTimeout(
    () => engine.kill({ cause: 'stuck', reason: `killed: it did not finish in ${LOAD_STUCK_AFTER / 1000} s` }),
    LOAD_STUCK_AFTER,
  );
  const outcome = await engine.load(createRevision(found, 1));
  const load = performance.now() - began;
  clearTimeout(timer);
  const { resident } = engine;
  engine.dismiss();
  await engine.ended;

  if (outcome.kind === 'gone') {
    const hint = remote ? '; with lower limits a server has less to read' : '';
    return { kind: 'broken', problems: [`the process that loaded it ${reason}${hint}`] };
  }
  if (outcome.kind === 'failed' && outcome.away === true) return { kind: 'server_away', problems: outcome.problems };
  if (outcome.kind === 'failed')
    return { kind: 'broken', problems: outcome.problems, ...(outcome.excess !== undefined && { tooLarge: true }) };
  const { profile } = outcome;
  const { family, limits } = found.manifest;
  const sizes = { choices: 8, uncached: profile.choicesCached ? 0 : 8, choiceTokens: 8 };
  const decisions = [16, 64, 256, limits.inputTokens]
    .filter((tokens) => tokens <= limits.inputTokens)
    .map((tokens) => ({ tokens, milliseconds: jobCost(family, profile, { premiseTokens: tokens, ...sizes }) }));
  return {
    kind: 'sound',
    speed: {
      remote,
      load,
      decisions,
      choice: profile.choicesCached ? costAt(profile.choice, 8) : 0,
      worst: worstCost(profile, found.manifest),
      resident,
    },
  };
}
