/**
 * Settings as rows of tables: each has its default, as the documentation writes it, and the parser that reads both the
 * default and what the environment says, so that the two cannot differ.
 */

/**
 * What a parser made of a text: its value, or what is wrong with it in words for whoever wrote the text. Every parser
 * of one text returns this shape, even in lower layers, which cannot import it; a reader of many fields returns `value`
 * with all `problems`. Where nobody asks what is wrong, as with a header that is then ignored, undefined is enough.
 */
export type Parsed<T> = { readonly value: T } | { readonly problem: string };

/** Reads the text of a setting, which is neither empty nor has spaces around it. */
export type Parser<T> = (text: string) => Parsed<T>;

/** A row of a table of settings. */
export interface Setting<T> {
  /** As one would write it; empty for none. */
  readonly default: string;
  readonly meaning: string;
  readonly parse: Parser<T>;
  /** The value where nothing is set, if the default is written in words that the parser does not read. */
  readonly unset?: () => T;
}

/** A table of settings by name. */
export type Settings = Readonly<Record<string, Setting<unknown>>>;

/** The parsed values of a table, by the names of its settings. */
export type ValuesOf<S extends Settings> = {
  readonly [Name in keyof S]: S[Name] extends Setting<infer T> ? T : never;
};

/** Makes a row; `otherwise` is the default as one would write it. */
export function setting<T>(otherwise: string, parse: Parser<T>, meaning: string, unset?: () => T): Setting<T> {
  return { default: otherwise, meaning, parse, ...(unset === undefined ? {} : { unset }) };
}

/** A row without a default. */
export function optional<T>(parse: Parser<T>, meaning: string): Setting<T | undefined> {
  return setting<T | undefined>('', parse, meaning, () => undefined);
}

/** Reads a table; what is unset or empty has its default. `problems` names each setting that is wrong. */
export function readSettings<S extends Settings>(
  table: S,
  env: Readonly<Record<string, string | undefined>>,
): { readonly value: ValuesOf<S>; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const values = Object.entries(table).map(([name, row]) => {
    const text = env[name]?.trim() || undefined;
    const outcome = text === undefined ? undefined : row.parse(text);
    if (outcome !== undefined && 'value' in outcome) return [name, outcome.value];
    if (outcome !== undefined) problems.push(`${name}: ${outcome.problem}`);
    return [name, defaultOf(name, row)];
  });
  return { value: Object.fromEntries(values) as ValuesOf<S>, problems };
}

function defaultOf(name: string, { default: otherwise, parse, unset }: Setting<unknown>): unknown {
  if (unset !== undefined) return unset();
  const outcome = parse(otherwise);
  if ('value' in outcome) return outcome.value;
  throw new Error(`the default of ${name}: ${outcome.problem}`);
}

/** Takes any text as it is. */
export const text: Parser<string> = (value) => ({ value });

/** A whole number; the value is that number times `units`. */
export function whole(least: number, most: number, units = 1): Parser<number> {
  return (written) => {
    const number = /^\d{1,9}$/.test(written) ? Number(written) : Number.NaN;
    if (number >= least && number <= most) return { value: number * units };
    return { problem: `must be a whole number from ${least} to ${most}, not '${written}'` };
  };
}

/** Seconds, an hour at most; the value is in milliseconds. */
export const seconds: Parser<number> = (written) => {
  const number = /^\d{1,4}(\.\d{1,3})?$/.test(written) ? Number(written) : Number.NaN;
  return number <= 3600 ? { value: number * 1000 } : { problem: `must be seconds from 0 to 3600, not '${written}'` };
};

/** Accepts one of these words. */
export function oneOf<const T extends string>(values: readonly T[]): Parser<T> {
  return (written) => {
    const known = values.find((candidate) => candidate === written);
    return known === undefined
      ? { problem: `must be one of ${values.join(', ')}, not '${written}'` }
      : { value: known };
  };
}
