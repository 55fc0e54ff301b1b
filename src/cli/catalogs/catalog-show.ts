/** `umpire catalogs show`: shows a catalog with everything that the operator added to it. */
import { listPackages } from '../../engine/package-tools/check.ts';
import type { LearnedFigures } from '../../stores/catalog-additions.ts';
import type { CatalogRecord } from '../../stores/catalog-store.ts';
import { ownerFrom, printTable, readArguments } from '../arguments.ts';
import { CATALOG_OPTIONS, type Command, flag, type Terminal } from '../command.ts';
import { entriesOf } from '../decide/records.ts';
import { existing } from '../learn/learn.ts';
import { modelsFolder } from '../learn/own-engine.ts';
import { percent } from '../learn/report-page.ts';
import { patience, STORE_ENVIRONMENT, withStores } from '../with-stores.ts';

const OPTIONS = {
  ...CATALOG_OPTIONS,
  json: flag('all of it as one line of JSON'),
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
    const shown = shownOf(record, kept, served);
    if (values.json === true) terminal.out(JSON.stringify(shown));
    else print(terminal, shown);
  },
};

/** The default revision of a model, by the packages in the folder of models; undefined if none is there. */
async function servedRevision(terminal: Terminal, model: string): Promise<string | undefined> {
  const packages = await listPackages(modelsFolder(terminal)).catch(() => []);
  const found = packages.find(({ id, isDefault }) => id === model && isDefault);
  return found === undefined ? undefined : `${found.id}@${found.revision}`;
}

/** All of a catalog, as `--json` prints it. */
function shownOf(record: CatalogRecord, kept: number, served: string | undefined) {
  const { id, model, version, visibility, createdAt, choices, calibrations = {}, additions = {} } = record;
  const { descriptions = {}, learned } = additions;
  // Counts are stored in code-unit order of the choices.
  const sorted = choices.toSorted();
  return {
    id,
    model,
    version,
    visibility,
    created_at: createdAt,
    served: served ?? null,
    choices: choices.map((choice) => ({
      choice,
      description: Object.hasOwn(descriptions, choice) ? (descriptions[choice] as string) : null,
      examples: learned?.examples[sorted.indexOf(choice)] ?? null,
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
            examples: learned.examples.reduce((total, count) => total + count, 0),
            before: learned.before,
            after: learned.after,
          },
    kept_examples: kept,
    calibrations,
  };
}

function print(terminal: Terminal, shown: ReturnType<typeof shownOf>): void {
  const { id, model, version, created_at, choices, learned, served } = shown;
  terminal.out(`${id}: model ${model}, version ${version}, ${choices.length} choices, created ${created_at}`);
  const isDescribed = choices.some(({ description }) => description !== null);
  printTable(
    terminal,
    ['CHOICE', ...(learned === null ? [] : ['EXAMPLES']), ...(isDescribed ? ['DESCRIPTION'] : [])],
    choices.map(({ choice, examples, description }) => [
      choice,
      ...(learned === null ? [] : [String(examples)]),
      ...(isDescribed ? [description ?? ''] : []),
    ]),
  );
  for (const [name, temperature] of Object.entries(shown.calibrations))
    terminal.out(`calibrated by an earlier release: temperature ${temperature} for ${name}`);
  if (learned === null) terminal.out('has learned nothing');
  else {
    terminal.out(
      `learned ${learned.rung} for ${learned.model} from ${learned.examples} examples, ${learned.learned_at}`,
    );
    terminal.out(`  digest ${learned.digest}`);
    terminal.out(`  held out: ${change(learned.before, learned.after)}`);
    terminal.out(`  ${standing(learned.model, served)}`);
  }
  terminal.out(`${shown.kept_examples} examples are kept`);
}

function change(before: LearnedFigures, after: LearnedFigures): string {
  return [
    `right ${percent(before.accuracy)}, after ${percent(after.accuracy)}`,
    `log loss ${before.log_loss.toFixed(4)}, after ${after.log_loss.toFixed(4)}`,
    `calibration error ${before.ece.toFixed(3)}, after ${after.ece.toFixed(3)}`,
  ].join('; ');
}

function standing(learnedFor: string, served: string | null): string {
  if (served === null) return 'whether it applies is not known: the model is not in the folder of models';
  if (learnedFor === served) return 'applies: that is the default revision';
  return `does not apply: ${served} is the default revision and decides zero-shot; learn again, or learn --refresh`;
}
