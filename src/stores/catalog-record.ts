/** Converts a catalog to text fields, which are the same in every store, and back. */
import { additionsProblem, type CatalogAdditions } from './catalog-additions.ts';
import type { Calibrations, CatalogRecord, StampedCatalog } from './catalog-store.ts';
import { StoreCorrupt } from './stores.ts';

/** What is stored of a catalog beside its owner and id. */
export interface CatalogFields {
  readonly stamp: string;
  readonly model: string;
  /** A JSON array of strings. */
  readonly choices: string;
  readonly version: string;
  readonly visibility: string;
  readonly created_at: string;
  /** A JSON object of numbers. Catalogs that were written before there were calibrations lack it. */
  readonly calibrations: string;
  /** A JSON object, see catalog-additions.ts. Catalogs that were written before there were additions lack it. */
  readonly additions: string;
}

/** All fields of a row or hash. The examples, which can be large, are read only where they are asked for. */
export interface WholeCatalogFields extends CatalogFields {
  /** The kept examples, as JSON lines; empty for none. */
  readonly examples: string;
}

/** The names of a catalog's columns or hash fields, without its kept examples. */
export const CATALOG_FIELDS = [
  'stamp',
  'model',
  'choices',
  'version',
  'visibility',
  'created_at',
  'calibrations',
  'additions',
] as const;

/** A record's fields, under a fresh stamp. */
export function toFields(record: CatalogRecord): CatalogFields {
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
  const record = { id, model, choices, version, visibility, createdAt: text('created_at') };
  return {
    stamp,
    record: {
      ...record,
      ...(Object.keys(calibrations).length === 0 ? {} : { calibrations }),
      ...(Object.keys(additions as object).length === 0 ? {} : { additions: additions as CatalogAdditions }),
    },
  };
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
