/** A catalog as one line of JSON, for another store or a backup. */
import { DEFAULT_VERSION, draftFault, PRIVATE } from '../domain/catalog-rules.ts';
import type { Parsed } from '../domain/settings.ts';
import { additionsProblem, type CatalogAdditions } from '../stores/catalog-additions.ts';
import { areCalibrations } from '../stores/catalog-record.ts';
import type { CatalogRecord } from '../stores/catalog-store.ts';
import { problemLines, readExamples } from './examples.ts';

/** The fields of a catalog's line. `examples`: the labelled examples kept beside it, as JSON lines; `''` for none. */
export function catalogLine(record: CatalogRecord, examples: string): object {
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
