/** `umpire models …`: lists the packages in the folder of models, and checks whether they work on this machine. */
import { DEFAULT_DEADLINE } from '../../engine/options.ts';
import {
  checkPackage,
  type ListedPackage,
  listPackages,
  type PackageSpeed,
  strayServers,
} from '../../engine/package-tools/check.ts';
import { packageNamed } from '../../engine/packages/cascade.ts';
import { isCascade } from '../../engine/packages/manifest.ts';
import { SILENT_LOG } from '../../stores/stores.ts';
import { printList, readArguments } from '../arguments.ts';
import { type Command, JSON_OPTION, type Terminal } from '../command.ts';
import { inferenceServersOf, modelsFolder } from '../learn/own-engine.ts';

const LIST = { json: JSON_OPTION } as const;

/** The commands `umpire models list` and `umpire models check`. */
export const MODEL_COMMANDS: readonly Command[] = [
  {
    name: 'models list',
    usage: '[--json]',
    summary: 'shows the model packages in the folder of models',
    notes: [
      "Packages are read, not loaded. One is complete if its manifest is valid and its files are there; 'umpire models check' says whether it works. DEFAULT is the revision that the plain name means if all of them work.",
    ],
    options: LIST,
    environment: ['UMPIRE_MODELS_DIR'],
    async run(args, terminal) {
      const { values } = readArguments(args, LIST);
      const packages = await listPackages(modelsFolder(terminal));
      const list = packages.map((each) => {
        const { inputTokens, candidateTokens, choices } = each.limits;
        const limits = `${inputTokens} input tokens, ${choices} choices of ${candidateTokens} tokens`;
        const { id, revision, family, ownedBy, languages } = each;
        const plainName = each.isDefault ? 'yes' : '';
        const row = [id, revision, plainName, languages.join(' ') || '?', family, ownedBy, stateOf(each), limits];
        return { row, plain: plain(each) };
      });
      const head = ['MODEL', 'REVISION', 'DEFAULT', 'LANGUAGES', 'FAMILY', 'OWNER', 'STATE', 'LIMITS'];
      printList(terminal, values.json, head, list);
      if (values.json === true) return;
      for (const { id, revision, problems, outdoneBy } of packages) {
        if (outdoneBy !== undefined) terminal.err(outdone(id, revision, outdoneBy));
        for (const problem of problems) terminal.err(`${id}@${revision}: ${problem}`);
      }
    },
  },
  {
    name: 'models check',
    usage: '[MODEL[@REVISION]]…',
    summary: 'loads packages, makes their canary decision and measures them',
    notes: ['With a cascade its steps are checked, too.'],
    positionals: [['MODEL', 'a model, or one revision of it (default: all)']],
    options: {},
    environment: ['UMPIRE_MODELS_DIR', 'UMPIRE_INFERENCE_SERVERS'],
    failure: 'a package is broken, or cannot be checked since its inference server is away',
    async run(args, terminal) {
      const { positionals } = readArguments(args, {}, [], 100);
      const folder = modelsFolder(terminal);
      const inferenceServers = inferenceServersOf(terminal);
      const packages = await listPackages(folder);
      for (const name of await strayServers(folder, inferenceServers))
        terminal.err(`UMPIRE_INFERENCE_SERVERS: there is no package '${name}' of the family remote`);
      const named = positionals.length === 0 ? packages : positionals.map((name) => find(packages, name));
      const chosen = [...new Set(named.flatMap((each) => [...each.steps.map((step) => find(packages, step)), each]))];
      if (chosen.length === 0) throw new Error(`there is no model package in ${folder}`);
      const failed = { broken: 0, server_away: 0 };
      for (const listed of chosen) {
        const { id, revision, family, problems, steps, outdoneBy } = listed;
        const logger = { ...SILENT_LOG, debug: () => {} };
        const outcome =
          problems.length > 0
            ? ({ kind: 'broken', problems } as const)
            : isCascade(family)
              ? ({ kind: 'cascade' } as const)
              : await checkPackage({ modelsDir: folder, logger, inferenceServers }, id, revision);
        if ('problems' in outcome) {
          failed[outcome.kind]++;
          const state = outcome.kind === 'broken' ? 'broken' : 'cannot be told, its inference server is away';
          terminal.out(`${id}@${revision}: ${state}`);
          for (const problem of outcome.problems) terminal.out(`  ${problem}`);
          continue;
        }
        if (outcome.kind === 'sound') {
          terminal.out(`${id}@${revision}: sound, loaded in ${outcome.speed.load.toFixed(0)} ms`);
          printSpeed(terminal, outcome.speed);
        } else terminal.out(`${id}@${revision}: sound, asks ${steps.join(', ')}`);
        if (outdoneBy !== undefined) terminal.out(`  ${outdone(id, revision, outdoneBy)}`);
      }
      const { broken, server_away: away } = failed;
      if (broken > 0) throw new Error(`${broken} of ${chosen.length} packages ${broken === 1 ? 'is' : 'are'} broken`);
      if (away > 0) throw new Error(`${away} of ${chosen.length} packages cannot be checked: no inference server`);
    },
  },
];

function outdone(id: string, revision: string, by: string): string {
  return `${id}@${revision} claims the plain name, which ${id}@${by} has`;
}

/** Prints the times and the memory that were measured of a package. */
export function printSpeed(terminal: Terminal, { remote, decisions, choice, worst, resident }: PackageSpeed): void {
  for (const { tokens, milliseconds } of decisions) {
    const where = remote ? 'with its inference server' : 'on one core';
    terminal.out(`  ${tokens} tokens, 8 choices: ${milliseconds.toFixed(1)} ms ${where}`);
  }
  if (choice > 0) terminal.out(`  each choice that is not cached: ${choice.toFixed(1)} ms`);
  const slow =
    worst > DEFAULT_DEADLINE ? `: longer than a caller waits who sets no deadline, ${DEFAULT_DEADLINE} ms` : '';
  terminal.out(`  the largest request that its limits allow: ${worst.toFixed(0)} ms${slow}`);
  terminal.out(`  an engine with this package alone takes ${Math.ceil(resident / 2 ** 20)} MiB`);
}

/** A package in the JSON that `--json` prints. */
function plain(listed: ListedPackage): object {
  const { inputTokens, candidateTokens, choices } = listed.limits;
  return {
    id: listed.id,
    revision: listed.revision,
    default: listed.isDefault,
    languages: listed.languages,
    family: listed.family,
    owned_by: listed.ownedBy,
    state: stateOf(listed),
    limits: { input_tokens: inputTokens, candidate_tokens: candidateTokens, choices },
    problems: listed.problems,
  };
}

function stateOf({ problems, disabled }: ListedPackage): string {
  if (problems.length > 0) return 'broken';
  // Only loading a package shows whether it works, and that is left to 'models check'.
  return disabled ? 'disabled' : 'complete';
}

/** Finds a package by id and revision, or by id alone, which means the default revision. */
function find(packages: readonly ListedPackage[], name: string): ListedPackage {
  const found = packageNamed(packages, name);
  if (found === undefined) throw new Error(`there is no package '${name}'; 'umpire models list' shows them`);
  return found;
}
