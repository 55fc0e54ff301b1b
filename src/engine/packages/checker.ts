/** Reads untyped JSON field by field and collects every problem with its place, instead of stopping at the first. */

/** A view of one JSON object. Every method returns a usable value and, when the field is wrong, notes a problem. */
export interface Checker {
  /** A string that matches `pattern`; `''` with a problem otherwise. */
  text(field: string, pattern?: RegExp): string;
  /** A finite number within [min, max]; `min` with a problem otherwise. */
  number(field: string, min: number, max: number): number;
  /** As `number`, and whole. */
  integer(field: string, min: number, max: number): number;
  /** A boolean; an absent field is `fallback`. */
  flag(field: string, fallback: boolean): boolean;
  /** A list of strings with at least `least` items; empty with a problem otherwise. */
  texts(field: string, least: number): readonly string[];
  /** A list of `count` finite numbers, or of at least one if `count` is left out; empty with a problem otherwise. */
  numbers(field: string, count?: number): readonly number[];
  /** A nested object; an empty one with a problem otherwise. */
  object(field: string): Checker;
  /** A list of at least `least` objects; empty with a problem otherwise. */
  objects(field: string, least: number): readonly Checker[];
  /** The value as it is; undefined if the field is absent. Never a problem. */
  value(field: string): unknown;
  /** The names of the fields that are there. */
  readonly fields: readonly string[];
  /**
   * Notes a problem for every field that no method of this view was asked for: a misspelt one would otherwise pass for
   * one that was left out.
   */
  refuseOthers(): void;
  /** Notes a problem of the object as a whole or of one field. */
  problem(message: string, field?: string): void;
}

/** A view of `value`. `place` opens each problem's text; `problems` receives them. */
export function createChecker(value: unknown, place: string, problems: string[]): Checker {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject) problems.push(`${place || 'the document'} must be an object`);
  const record = new Map<string, unknown>(isObject ? Object.entries(value) : []);
  const at = (field: string): string => (place === '' ? field : `${place}.${field}`);
  const problem = (message: string, field?: string): void => {
    if (isObject) problems.push(`${field === undefined ? place || 'the document' : at(field)} ${message}`);
  };

  const asked = new Set<string>();
  const ask = (field: string): unknown => {
    asked.add(field);
    return record.get(field);
  };

  const number = (field: string, min: number, max: number): number => {
    const found = ask(field);
    if (typeof found === 'number' && found >= min && found <= max) return found;
    problem(`must be a number from ${min} to ${max}`, field);
    return min;
  };

  return {
    fields: [...record.keys()],
    problem,
    number,
    text(field, pattern = /./su) {
      const found = ask(field);
      if (typeof found === 'string' && pattern.test(found)) return found;
      problem(typeof found === 'string' ? `must match ${pattern}` : 'must be a string', field);
      return '';
    },
    integer(field, min, max) {
      const found = number(field, min, max);
      if (Number.isInteger(found)) return found;
      problem('must be a whole number', field);
      return min;
    },
    flag(field, fallback) {
      const found = ask(field) ?? fallback;
      if (typeof found === 'boolean') return found;
      problem('must be true or false', field);
      return fallback;
    },
    texts(field, least) {
      const found = ask(field);
      const whole =
        Array.isArray(found) && found.length >= least && found.every((item) => typeof item === 'string' && item !== '');
      if (whole) return found;
      problem(`must be a list of at least ${least} non-empty strings`, field);
      return [];
    },
    numbers(field, count) {
      const found = ask(field);
      const isLong = Array.isArray(found) && (count === undefined ? found.length > 0 : found.length === count);
      if (isLong && found.every(Number.isFinite)) return found;
      problem(count === undefined ? 'must be a list of numbers' : `must be a list of ${count} numbers`, field);
      return [];
    },
    object(field) {
      const found = ask(field);
      // The nested checker reports a wrong type itself, under its own place.
      return createChecker(found, at(field), problems);
    },
    objects(field, least) {
      const found = ask(field);
      if (Array.isArray(found) && found.length >= least) {
        return found.map((item, i) => createChecker(item, `${at(field)}[${i}]`, problems));
      }
      problem(`must be a list of at least ${least} objects`, field);
      return [];
    },
    value: ask,
    refuseOthers() {
      for (const field of record.keys()) {
        if (!asked.has(field)) problem(`is unknown; known are ${[...asked].sort().join(', ')}`, field);
      }
    },
  };
}

/**
 * Reads a package's options: `read` asks for each of them. @throws InvalidOptions with every problem, fields that were
 * not asked for included.
 */
export function readOptions<T>(options: unknown, read: (fields: Checker) => T): T {
  const problems: string[] = [];
  const fields = createChecker(options, 'options', problems);
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
