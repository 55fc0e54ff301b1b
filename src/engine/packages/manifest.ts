/**
 * `model.json`, the manifest of a model package `<models>/<id>/<revision>/`:
 *
 *     { "schema": 1, "id", "revision", "family", "owned_by", "status": "ready" | "disabled", "default": boolean,
 *       "limits": { "input_tokens", "candidate_tokens", "choices" },
 *       "files": { "<name>": { "sha256": "<64 hex digits>", "bytes": n } },     every file that the engine loads
 *       "options": { … the family's own … },
 *       "unread": { "bound": 0…1, "pull": 0…20 },     may be left out, see UnreadRule
 *       "canary": { "input", "instruction", "choices": [2 or more], "choice": "the expected winner" } }
 *
 * A cascade has no limits, files, rule and canary of its own, see cascade.ts.
 *
 * One file: the checker, which the families' options are read with, too, is what every reading of a manifest is made
 * of.
 */
import type { ModelLimits } from '../engine.ts';
import { messageOf } from '../errors.ts';

/** Names of models and of their revisions. */
export const NAME_PATTERN = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const FILE_NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** A file that the engine loads: checked against size and SHA-256 before it is used. */
export interface PackageFile {
  readonly sha256: string;
  readonly bytes: number;
}

/** A decision whose answer is known: made after every load. */
export interface Canary {
  readonly input: string;
  readonly instruction: string;
  /** In code-unit order. */
  readonly choices: readonly string[];
  readonly choice: string;
}

/**
 * How much less sure a model is of a text that it has no words for: for a share of unread tokens beyond `bound` its
 * probabilities get the temperature exp(pull · (share − bound)).
 */
export interface UnreadRule {
  readonly bound: number;
  readonly pull: number;
}

/** A valid manifest. Structured-clonable: it travels to the engine processes as it is. */
export interface Manifest {
  readonly id: string;
  readonly revision: string;
  readonly family: FamilyName;
  readonly ownedBy: string;
  readonly disabled: boolean;
  readonly isDefault: boolean;
  /** BCP 47 tags; undefined if the package does not say. */
  readonly languages: readonly string[] | undefined;
  /** Of a cascade those that a request may have at least: its own are its steps'. */
  readonly limits: ModelLimits;
  readonly files: ReadonlyMap<string, PackageFile>;
  /** Checked by the family when it loads. */
  readonly options: unknown;
  readonly unread: UnreadRule | undefined;
  /** Undefined for a cascade alone: its steps have made theirs. */
  readonly canary: Canary | undefined;
}

/**
 * Reads the text of a `model.json` that lies in the folder `<id>/<revision>`. Never throws: `problems` lists everything
 * that is wrong, and a manifest with any must not be used.
 */
export function readManifest(
  text: string,
  id: string,
  revision: string,
): { readonly value: Manifest; readonly problems: string[] } {
  const problems: string[] = [];
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    problems.push(`is not JSON: ${messageOf(error)}`);
    document = {};
  }
  const broken = problems.length > 0;
  const fields = new Checker(document, '', problems);
  const family = fields.oneOf('family', FAMILY_NAMES);
  const isWhole = !isCascade(family);
  for (const field of isWhole ? [] : OF_STEPS) {
    if (fields.has(field)) fields.problem('is not for a cascade, whose steps have theirs', field);
  }
  const value: Manifest = {
    id: named(fields, 'id', id),
    revision: named(fields, 'revision', revision),
    family,
    ownedBy: fields.text('owned_by', /./u),
    disabled: fields.oneOf('status', ['ready', 'disabled']) === 'disabled',
    isDefault: fields.flag('default', false),
    languages: fields.has('languages') ? fields.texts('languages', 1) : undefined,
    limits: isWhole ? limitsOf(fields.object('limits')) : LEAST_LIMITS,
    files: isWhole ? filesOf(fields.object('files'), family) : new Map(),
    options: isObject(document) ? document.options : {},
    unread: fields.has('unread') ? unreadOf(fields.object('unread')) : undefined,
    canary: isWhole ? canaryOf(fields.object('canary')) : undefined,
  };
  fields.integer('schema', 1, 1);
  fields.object('options');
  return { value, problems: broken ? problems.slice(0, 1) : problems };
}

function named(fields: Checker, field: string, folder: string): string {
  const found = fields.text(field, NAME_PATTERN);
  if (found !== '' && found !== folder) fields.problem(`is "${found}", but the folder is called "${folder}"`, field);
  return folder;
}

/** What the steps of a cascade have, and it has not. */
const OF_STEPS = ['limits', 'files', 'unread', 'canary'] as const;

/** The narrowest limits that there may be. */
export const LEAST_LIMITS: ModelLimits = { inputTokens: 1, candidateTokens: 1, choices: 2 };

/** Reads `limits`, of a manifest or of a model within a package. */
export function limitsOf(limits: Checker): ModelLimits {
  return {
    inputTokens: limits.integer('input_tokens', 1, 1_000_000),
    candidateTokens: limits.integer('candidate_tokens', 1, 100_000),
    choices: limits.integer('choices', 2, 300),
  };
}

function filesOf(files: Checker, family: FamilyName): ReadonlyMap<string, PackageFile> {
  // A package of a server may need no files: the server holds them.
  if (files.fields.length === 0 && !isRemote(family)) files.problem('must name the files that the engine loads');
  return new Map(
    files.fields.map((name) => {
      if (!FILE_NAME_PATTERN.test(name)) files.problem('is not a plain file name', name);
      const file = files.object(name);
      return [name, { sha256: file.text('sha256', /^[0-9a-f]{64}$/), bytes: file.integer('bytes', 1, 2 ** 40) }];
    }),
  );
}

function unreadOf(rule: Checker): UnreadRule {
  const found = { bound: rule.number('bound', 0, 1), pull: rule.number('pull', 0, 20) };
  rule.refuseOthers();
  return found;
}

/** Reads a canary, of a manifest or of a file of its own. */
export function canaryOf(canary: Checker): Canary {
  const choices = [...canary.texts('choices', 2)].sort(byCodeUnits);
  const choice = canary.text('choice');
  if (choices.length > 0 && !choices.includes(choice)) canary.problem('must be one of the choices', 'choice');
  if (new Set(choices).size !== choices.length) canary.problem('must be unique', 'choices');
  return { input: canary.text('input'), instruction: canary.text('instruction'), choices, choice };
}

/** Made when it is needed: an engine process, which reads this file for its checker, would pay milliseconds for it. */
let numeric: Intl.Collator | undefined;

/** Orders names of models, or revisions of one: numbers in them count as numbers, so that `r10` comes after `r9`. */
export function byName(a: string, b: string): number {
  numeric ??= new Intl.Collator('en', { numeric: true });
  return numeric.compare(a, b) || byCodeUnits(a, b);
}

/** Orders strings by their UTF-16 code units. */
export function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A JSON object with fields that have not been checked. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// Reads untyped JSON field by field and collects every problem with its place, instead of stopping at the first.

/**
 * A view of one JSON object. Every method returns a usable value and, when the field is wrong, notes a problem. A field
 * for which a fallback is given may be left out.
 */
export class Checker {
  readonly #record: ReadonlyMap<string, unknown>;
  readonly #isObject: boolean;
  readonly #place: string;
  readonly #problems: string[];
  readonly #asked = new Set<string>();

  /** A view of `value`. `place` opens each problem's text; `problems` receives them. */
  constructor(value: unknown, place: string, problems: string[]) {
    this.#isObject = isObject(value);
    this.#record = new Map(isObject(value) ? Object.entries(value) : []);
    this.#place = place;
    this.#problems = problems;
    if (!this.#isObject) problems.push(`${place || 'the document'} must be an object`);
  }

  /** The names of the fields that are there. */
  get fields(): readonly string[] {
    return [...this.#record.keys()];
  }

  /** The value as it is; undefined if the field is absent. Never a problem. */
  value(field: string): unknown {
    this.#asked.add(field);
    return this.#record.get(field);
  }

  /** Whether the field is there. */
  has(field: string): boolean {
    return this.value(field) !== undefined;
  }

  /** A string that matches `pattern`; `''` with a problem otherwise. */
  text(field: string, pattern = /./su, fallback?: string): string {
    if (fallback !== undefined && !this.has(field)) return fallback;
    const found = this.value(field);
    if (typeof found === 'string' && pattern.test(found)) return found;
    this.problem(typeof found === 'string' ? `must match ${pattern}` : 'must be a string', field);
    return '';
  }

  /** The same of a field that may be left out. */
  optionalText(field: string, pattern?: RegExp): string | undefined {
    return this.has(field) ? this.text(field, pattern) : undefined;
  }

  /** One of these strings; the first with a problem otherwise. */
  oneOf<T extends string>(field: string, names: readonly T[], fallback?: T): T {
    if (fallback !== undefined && !this.has(field)) return fallback;
    const found = this.value(field);
    const named = names.find((name) => name === found);
    if (named === undefined) this.problem(`must be one of ${names.join(', ')}`, field);
    return named ?? (names[0] as T);
  }

  /** A finite number within [min, max]; `min` with a problem otherwise. */
  number(field: string, min: number, max: number): number {
    const found = this.value(field);
    if (typeof found === 'number' && found >= min && found <= max) return found;
    this.problem(`must be a number from ${min} to ${max}`, field);
    return min;
  }

  /** As `number`, and whole. */
  integer(field: string, min: number, max: number, fallback?: number): number {
    if (fallback !== undefined && !this.has(field)) return fallback;
    const found = this.number(field, min, max);
    if (Number.isInteger(found)) return found;
    this.problem('must be a whole number', field);
    return min;
  }

  /** A boolean. */
  flag(field: string, fallback: boolean): boolean {
    const found = this.value(field) ?? fallback;
    if (typeof found === 'boolean') return found;
    this.problem('must be true or false', field);
    return fallback;
  }

  /** A list of strings with at least `least` items; empty with a problem otherwise. */
  texts(field: string, least: number): readonly string[] {
    const found = this.value(field);
    const whole =
      Array.isArray(found) && found.length >= least && found.every((item) => typeof item === 'string' && item !== '');
    if (whole) return found;
    this.problem(`must be a list of at least ${least} non-empty strings`, field);
    return [];
  }

  /** A list of `count` finite numbers, or of at least one if `count` is left out; empty with a problem otherwise. */
  numbers(field: string, count?: number): readonly number[] {
    const found = this.value(field);
    const isLong = Array.isArray(found) && (count === undefined ? found.length > 0 : found.length === count);
    if (isLong && found.every(Number.isFinite)) return found;
    this.problem(count === undefined ? 'must be a list of numbers' : `must be a list of ${count} numbers`, field);
    return [];
  }

  /** A nested object; an empty one with a problem otherwise. */
  object(field: string, fallback?: object): Checker {
    // The nested checker reports a wrong type itself, under its own place.
    return new Checker(this.has(field) ? this.value(field) : fallback, this.#at(field), this.#problems);
  }

  /** A list of at least `least` objects; empty with a problem otherwise. */
  objects(field: string, least: number): readonly Checker[] {
    const found = this.value(field);
    if (Array.isArray(found) && found.length >= least) {
      return found.map((item, i) => new Checker(item, `${this.#at(field)}[${i}]`, this.#problems));
    }
    this.problem(`must be a list of at least ${least} objects`, field);
    return [];
  }

  /**
   * Notes a problem for every field that no method of this view was asked for: a misspelt one would otherwise pass for
   * one that was left out.
   */
  refuseOthers(): void {
    for (const field of this.fields.filter((each) => !this.#asked.has(each))) {
      this.problem(`is unknown; known are ${[...this.#asked].sort().join(', ')}`, field);
    }
  }

  /** Notes a problem of the object as a whole or of one field. */
  problem(message: string, field?: string): void {
    const place = field === undefined ? this.#place || 'the document' : this.#at(field);
    if (this.#isObject) this.#problems.push(`${place} ${message}`);
  }

  #at(field: string): string {
    return this.#place === '' ? field : `${this.#place}.${field}`;
  }
}

/**
 * Reads a package's options: `read` asks for each of them. @throws InvalidOptions with every problem, fields that were
 * not asked for included.
 */
export function readOptions<T>(options: unknown, read: (fields: Checker) => T): T {
  const problems: string[] = [];
  const fields = new Checker(options, 'options', problems);
  const found = read(fields);
  fields.refuseOthers();
  if (problems.length > 0) throw new InvalidOptions(problems);
  return found;
}

/** The package's options are wrong. */
export class InvalidOptions extends Error {
  override readonly name = 'InvalidOptions';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('; '));
    this.problems = problems;
  }
}

// The kinds of model that the engine knows how to run, and where each kind's numbers are made.

/**
 * `here`: by graph runs in an engine process. `server`: elsewhere, by a server that the package's `options.server`
 * names. `steps`: by the models that the package names.
 */
const FAMILIES = {
  'bi-encoder': 'here',
  'nli-cross-encoder': 'here',
  'two-stage': 'here',
  remote: 'server',
  // The older name of `remote` with the dialect of that name.
  'open-inference': 'server',
  cascade: 'steps',
} as const satisfies Readonly<Record<string, 'here' | 'server' | 'steps'>>;

/** A `family` of a manifest. `worker/load-family.ts` finds its code by this name. */
export type FamilyName = keyof typeof FAMILIES;

/** All families, in the order in which messages list them. */
export const FAMILY_NAMES = Object.keys(FAMILIES) as readonly FamilyName[];

/**
 * Whether a server elsewhere makes the numbers of this family's models. Such a model has a process and a queue of its
 * own, so that a server that is slow or away holds up nothing else.
 */
export function isRemote(family: FamilyName): boolean {
  return FAMILIES[family] === 'server';
}

/** Whether the family's packages have a graph, which an engine process runs. */
export function isLocal(family: FamilyName): boolean {
  return FAMILIES[family] === 'here';
}

/** Whether the family's packages name other models, which decide for them. No process loads such a package. */
export function isCascade(family: FamilyName): boolean {
  return FAMILIES[family] === 'steps';
}

/** What the servers of the family `remote` speak: its `options.dialect`. */
export const DIALECT_NAMES = ['open-inference', 'rerank', 'embeddings', 'system-one', 'chat'] as const;

/** The name of a dialect. `worker/load-family.ts` finds its code by this name. */
export type DialectName = (typeof DIALECT_NAMES)[number];
