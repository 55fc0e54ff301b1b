/** Converts a catalog to text fields, which are the same in every store, and back. */
import { additionsProblem, type CatalogAdditions } from './catalog-additions.ts';
import type { Calibrations, CatalogRecord, StampedCatalog } from './catalog-store.ts';
import { StoreCorrupt } from './stores.ts';

/** The names of a catalog's columns or hash fields, all of them texts, without its owner, id and kept examples. */
export const CATALOG_FIELDS = [
  'stamp',
  'model',
  // A JSON array of strings.
  'choices',
  'version',
  'visibility',
  'created_at',
  // A JSON object of numbers, and one as catalog-additions.ts says. Catalogs that were written before lack them.
  'calibrations',
  'additions',
] as const;

/** A record's fields, under a fresh stamp. */
export function toFields(record: CatalogRecord): Readonly<Record<(typeof CATALOG_FIELDS)[number], string>> {
  return {
    stamp: newStamp(),
    model: record.model,
    choices: JSON.stringify(record.choices),
    version: record.version,
    visibility: record.visibility,
    created_at: record.createdAt,
    calibrations: JSON.stringify(record.calibrations ?? {}),
    additions: JSON.stringify(record.additions ?? {}),
  };
}

/** A stamp that no other write has. */
const newStamp = (): string => crypto.randomUUID();

/** The record that the fields hold. Throws StoreCorrupt, which names the catalog and not its content. */
export function fromFields(owner: string, id: string, fields: Readonly<Record<string, unknown>>): StampedCatalog {
  const text = (name: (typeof CATALOG_FIELDS)[number]): string => {
    const value = fields[name];
    if (typeof value !== 'string') throw new StoreCorrupt(`catalog '${id}' of '${owner}': field ${name} is missing`);
    return value;
  };
  const [stamp, model, version, visibility] = [text('stamp'), text('model'), text('version'), text('visibility')];
  const choices = parse(text('choices'));
  const calibrations = typeof fields.calibrations === 'string' ? parse(fields.calibrations) : {};
  const sound =
    stamp !== '' &&
    model !== '' &&
    Array.isArray(choices) &&
    choices.length > 0 &&
    choices.every((choice): choice is string => typeof choice === 'string' && choice !== '') &&
    new Set(choices).size === choices.length &&
    areCalibrations(calibrations);
  if (!sound) throw new StoreCorrupt(`catalog '${id}' of '${owner}' is not readable`);
  const additions = typeof fields.additions === 'string' ? parse(fields.additions) : {};
  const problem = additionsProblem(additions, choices, model);
  if (problem !== undefined) throw new StoreCorrupt(`catalog '${id}' of '${owner}': ${problem}`);
  const fitted = Object.keys(calibrations).length === 0 ? {} : { calibrations };
  const record = { id, model, choices, version, visibility, createdAt: text('created_at'), ...fitted };
  return { stamp, record: withAdditions(record, additions as CatalogAdditions) };
}

/** The record with these additions in place of its own; those that are empty are absent. */
export function withAdditions(
  { additions: _, ...bare }: CatalogRecord,
  { descriptions = {}, learned }: { readonly [name in keyof CatalogAdditions]: CatalogAdditions[name] | undefined },
): CatalogRecord {
  const additions = {
    ...(Object.keys(descriptions).length === 0 ? {} : { descriptions }),
    ...(learned === undefined ? {} : { learned }),
  };
  return Object.keys(additions).length === 0 ? bare : { ...bare, additions };
}

/** Whether a value is an object of positive numbers. */
export function areCalibrations(value: unknown): value is Calibrations {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((each) => Number.isFinite(each) && each > 0);
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
