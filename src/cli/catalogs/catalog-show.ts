/**
 * `umpire catalogs show`: shows a catalog with everything that the operator added to it; and a catalog as one line of
 * JSON, for another store or a backup.
 */
import { DEFAULT_VERSION, draftFault, PRIVATE } from '../../domain/catalogs.ts';
import type { Parsed } from '../../domain/settings.ts';
import { listPackages } from '../../engine/package-tools/check.ts';
import { additionsProblem, type CatalogAdditions, type LearnedFigures } from '../../stores/catalog-additions.ts';
import { areCalibrations } from '../../stores/catalog-record.ts';
import type { CatalogRecord, CatalogStore } from '../../stores/catalog-store.ts';
import { StoreCorrupt } from '../../stores/stores.ts';
import { ownerFrom, printTable, readArguments } from '../arguments.ts';
import { type Command, OWNER_OPTION, type Terminal } from '../command.ts';
import { entriesOf } from '../decide/records.ts';
import { existing } from '../learn/catalog-change.ts';
import { problemLines, readExamples } from '../learn/examples.ts';
import { modelsFolder } from '../learn/own-engine.ts';
import { percent } from '../learn/report-page.ts';
import { patience, STORE_ENVIRONMENT, withStores } from '../with-stores.ts';

const OPTIONS = {
  owner: { ...OWNER_OPTION, meaning: 'who owns the catalog; needed' },
  catalog: { type: 'string', value: 'ID', meaning: 'the catalog; needed' },
  json: { type: 'boolean', meaning: 'all of it as one line of JSON' },
} as const;

/** The command `umpire catalogs show`. */
export const CATALOG_SHOW_COMMAND: Command = {
  name: 'catalogs show',
  usage: '--owner NAME --catalog ID [--json]',
  summary: 'shows a catalog with its descriptions and what it learned',
  notes: [
    "What was learned applies to one revision. The command compares it with the model's default revision in the folder of models; any other revision decides zero-shot.",
  ],
  options: OPTIONS,
  environment: [...STORE_ENVIRONMENT, 'UMPIRE_MODELS_DIR'],
  async run(args, terminal) {
    const { values } = readArguments(args, OPTIONS);
    const owner = ownerFrom(values.owner);
    const [record, kept] = await withStores(terminal, async ({ catalogs }) => {
      const found = await existing(catalogs, owner, values.catalog);
      return [found.record, entriesOf(await catalogs.examples(owner, found.record.id, patience())).length] as const;
    });
    const served = await servedRevision(terminal, record.model);
    if (values.json === true) terminal.out(JSON.stringify(plain(record, kept, served)));
    else print(terminal, record, kept, served);
  },
};

/** The default revision of a model, by the packages in the folder of models; undefined if none is there. */
async function servedRevision(terminal: Terminal, model: string): Promise<string | undefined> {
  const packages = await listPackages(modelsFolder(terminal)).catch(() => []);
  const found = packages.find(({ id, isDefault }) => id === model && isDefault);
  return found === undefined ? undefined : `${found.id}@${found.revision}`;
}

function plain(record: CatalogRecord, kept: number, served: string | undefined): object {
  const { id, model, version, visibility, createdAt, choices, calibrations = {}, additions = {} } = record;
  const { descriptions = {}, learned } = additions;
  const examples = examplesByChoice(record);
  return {
    id,
    model,
    version,
    visibility,
    created_at: createdAt,
    served: served ?? null,
    choices: choices.map((choice) => ({
      choice,
      description: Object.hasOwn(descriptions, choice) ? descriptions[choice] : null,
      examples: examples?.get(choice) ?? null,
    })),
    learned:
      learned === undefined
        ? null
        : {
            digest: learned.digest,
            model: learned.model,
            applies: served === undefined ? null : learned.model === served,
            rung: learned.rung,
            learned_at: learned.learned_at,
            examples: sum(learned.examples),
            before: learned.before,
            after: learned.after,
          },
    kept_examples: kept,
    calibrations,
  };
}

function print(terminal: Terminal, record: CatalogRecord, kept: number, served: string | undefined): void {
  const { id, model, version, createdAt, choices, calibrations = {}, additions = {} } = record;
  const { descriptions = {}, learned } = additions;
  const examples = examplesByChoice(record);
  terminal.out(`${id}: model ${model}, version ${version}, ${choices.length} choices, created ${createdAt}`);
  const isDescribed = Object.keys(descriptions).length > 0;
  printTable(
    terminal,
    ['CHOICE', ...(examples === undefined ? [] : ['EXAMPLES']), ...(isDescribed ? ['DESCRIPTION'] : [])],
    choices.map((choice) => [
      choice,
      ...(examples === undefined ? [] : [String(examples.get(choice))]),
      ...(isDescribed ? [Object.hasOwn(descriptions, choice) ? (descriptions[choice] as string) : ''] : []),
    ]),
  );
  for (const [name, temperature] of Object.entries(calibrations))
    terminal.out(`calibrated by an earlier release: temperature ${temperature} for ${name}`);
  if (learned === undefined) terminal.out('has learned nothing');
  else {
    const { rung, digest, before, after, learned_at } = learned;
    terminal.out(`learned ${rung} for ${learned.model} from ${sum(learned.examples)} examples, ${learned_at}`);
    terminal.out(`  digest ${digest}`);
    terminal.out(`  held out: ${change(before, after)}`);
    terminal.out(`  ${standing(learned.model, served)}`);
  }
  terminal.out(`${kept} examples are kept`);
}

function change(before: LearnedFigures, after: LearnedFigures): string {
  return [
    `right ${percent(before.accuracy)}, after ${percent(after.accuracy)}`,
    `log loss ${before.log_loss.toFixed(4)}, after ${after.log_loss.toFixed(4)}`,
    `calibration error ${before.ece.toFixed(3)}, after ${after.ece.toFixed(3)}`,
  ].join('; ');
}

function standing(learnedFor: string, served: string | undefined): string {
  if (served === undefined) return 'whether it applies is not known: the model is not in the folder of models';
  if (learnedFor === served) return 'applies: that is the default revision';
  return `does not apply: ${served} is the default revision and decides zero-shot; learn again, or learn --refresh`;
}

/** How many examples of each choice were learned from. Counts are stored in code-unit order of the choices. */
function examplesByChoice({ choices, additions }: CatalogRecord): ReadonlyMap<string, number> | undefined {
  const counts = additions?.learned?.examples;
  return counts && new Map(choices.toSorted().map((choice, place) => [choice, counts[place] as number]));
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/**
 * The line of a stored catalog with all that is kept beside it; without a line if there is no such catalog. `problem`:
 * why the catalog is left out, or only the examples that are kept beside it. Whatever has a line can be imported: one
 * that could not would keep all others of its file from it.
 */
export async function lineOf(
  catalogs: CatalogStore,
  owner: string,
  id: string,
): Promise<{ readonly line?: object; readonly problem?: string }> {
  try {
    const found = await catalogs.read(owner, id, patience());
    if (found === undefined) return {};
    const line = catalogLine(found.record, await catalogs.examples(owner, id, patience()));
    if ('value' in catalogFromLine({ ...line })) return { line };
    const bare = catalogLine(found.record, '');
    if ('value' in catalogFromLine({ ...bare })) return { line: bare, problem: 'kept examples not readable, left out' };
  } catch (error) {
    if (!(error instanceof StoreCorrupt)) throw error;
  }
  return { problem: 'not readable, left out' };
}

/** The fields of a catalog's line. `examples`: the labelled examples kept beside it, as JSON lines; `''` for none. */
function catalogLine(record: CatalogRecord, examples: string): object {
  const { createdAt, ...fields } = record;
  return { ...fields, created_at: createdAt, ...(examples === '' ? {} : { examples }) };
}

/** The catalog of a line's fields. Whether its model is served and takes its choices is not checked here. */
export function catalogFromLine(fields: Readonly<Record<string, unknown>>): Parsed<CatalogRecord> {
  const { id, model, choices, version, visibility, created_at: createdAt, calibrations = {}, additions = {} } = fields;
  const { examples = '' } = fields;
  if (typeof id !== 'string' || typeof model !== 'string' || model === '')
    return { problem: 'id and model must be texts' };
  if (!Array.isArray(choices) || !choices.every((choice) => typeof choice === 'string'))
    return { problem: 'choices must be a list of texts' };
  if (!areCalibrations(calibrations)) return { problem: 'calibrations must be positive numbers' };
  for (const [name, value] of Object.entries({ version, visibility, created_at: createdAt })) {
    if (value !== undefined && typeof value !== 'string') return { problem: `${name} must be a text` };
  }
  const draft = {
    id,
    model,
    choices,
    version: version as string | undefined,
    visibility: visibility as string | undefined,
  };
  const fault = draftFault(draft);
  if (fault !== undefined) return { problem: fault.message };
  const problem = additionsProblem(additions, choices, model) ?? examplesProblem(examples, choices);
  if (problem !== undefined) return { problem };
  const value: CatalogRecord = {
    id,
    model,
    choices,
    version: draft.version ?? DEFAULT_VERSION,
    visibility: draft.visibility ?? PRIVATE,
    createdAt: (createdAt as string | undefined) ?? new Date().toISOString(),
    ...(Object.keys(calibrations).length === 0 ? {} : { calibrations }),
    ...(Object.keys(additions as object).length === 0 ? {} : { additions: additions as CatalogAdditions }),
  };
  return { value };
}

function examplesProblem(examples: unknown, choices: readonly string[]): string | undefined {
  if (typeof examples !== 'string' || !/^(\{|$)/.test(examples)) return 'examples must be JSON lines in a text';
  const [problem] = problemLines(readExamples(examples, choices).problems);
  return problem === undefined ? undefined : `examples, ${problem}`;
}

/** The kept examples of a line's fields, which `catalogFromLine` has checked; `''` if there are none. */
export function examplesOfLine({ examples }: Readonly<Record<string, unknown>>): string {
  return typeof examples === 'string' ? examples : '';
}
