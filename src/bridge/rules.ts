/**
 * The rules of a request's body as data, and the one check that reads them. A rule names the JSON types that a value
 * may have, each with its constraints. What no rule allows is refused by its place: nothing in a body is ignored.
 */
import { type Path, Refused } from '../front/refused.ts';

/** The types that a value may have. */
export interface Rule {
  /** `values`: the only ones. Unless there are any, a string may not be empty. */
  readonly string?: { readonly values?: readonly string[]; readonly empty?: true };
  readonly boolean?: true;
  readonly null?: true;
  readonly array?: { readonly of: Rule; readonly least?: number; readonly most?: number } | 'any';
  readonly object?: Shape | 'any';
  /** Why every value but null is refused. */
  readonly refused?: string;
}

/** Rules by the names of fields. */
export type Fields = Readonly<Record<string, Rule>>;

/** An object with named fields, one whose names are the caller's, or one whose rule depends on one of its fields. */
type Shape =
  | { readonly needed: Fields; readonly optional: Fields }
  | { readonly each: Rule; readonly least: number; readonly most: number }
  | { readonly by: string; readonly rules: Fields; readonly otherwise?: Rule | undefined };

/** The rule of an object with these fields and no others. */
export const record = (needed: Fields, optional: Fields = {}): Rule => ({ object: { needed, optional } });

/** The rule of an object whose field `by` says which rule it has; `otherwise` is for one without that field. */
export const variant = (by: string, rules: Fields, otherwise?: Rule): Rule => ({ object: { by, rules, otherwise } });

/** The rule of a string that is one of these. */
export const oneOf = (...values: readonly string[]): Rule => ({ string: { values } });

/** Throws Refused for the first value, in the order of the fields, that the rule does not allow. */
export function checkBody(value: unknown, rule: Rule, path: Path = []): void {
  const refuse = (message: string): never => {
    throw new Refused('INVALID_VALUE', message, { path });
  };
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : (typeof value as keyof Rule | 'number');
  if (rule.refused !== undefined && type !== 'null') refuse(rule.refused);
  if (rule.refused !== undefined) return;
  const found = type === 'number' ? undefined : rule[type];
  if (found === undefined) {
    throw new Refused('INVALID_TYPE', `must be ${Object.keys(rule).join(' or ')}, not ${type}`, { path });
  }
  if (typeof value === 'string') {
    const { values, empty } = rule.string ?? {};
    if (values?.includes(value) === false) refuse(`must be one of: ${values.join(', ')}`);
    if (value === '' && empty !== true) refuse('must not be empty');
  } else if (Array.isArray(value) && typeof rule.array === 'object') {
    const { of, least = 0, most = Number.POSITIVE_INFINITY } = rule.array;
    if (value.length < least || value.length > most)
      refuse(`must have ${least} to ${most} entries, not ${value.length}`);
    for (const [i, each] of value.entries()) checkBody(each, of, [...path, i]);
  } else if (type === 'object' && typeof rule.object === 'object') {
    checkObject(value as Readonly<Record<string, unknown>>, rule.object, path);
  }
}

function checkObject(value: Readonly<Record<string, unknown>>, shape: Shape, path: Path): void {
  const names = Object.keys(value);
  const refuse = (reason: 'MISSING_FIELD' | 'UNKNOWN_FIELD' | 'INVALID_VALUE', message: string, at: Path): never => {
    throw new Refused(reason, message, { path: at });
  };
  if ('by' in shape) {
    const { by, rules, otherwise } = shape;
    const own = Object.hasOwn(value, by) ? value[by] : undefined;
    if (own === undefined && otherwise !== undefined) checkBody(value, otherwise, path);
    else if (own === undefined) refuse('MISSING_FIELD', 'is missing', [...path, by]);
    else if (typeof own === 'string' && Object.hasOwn(rules, own)) checkBody(value, rules[own] as Rule, path);
    else checkBody(own, oneOf(...Object.keys(rules)), [...path, by]);
  } else if ('each' in shape) {
    const { each, least, most } = shape;
    if (names.length < least || names.length > most)
      refuse('INVALID_VALUE', `must have ${least} to ${most} entries, not ${names.length}`, path);
    if (names.includes('')) refuse('INVALID_VALUE', 'a name must not be empty', path);
    for (const name of names) checkBody(value[name], each, [...path, name]);
  } else {
    for (const name of Object.keys(shape.needed)) {
      if (!Object.hasOwn(value, name)) refuse('MISSING_FIELD', 'is missing', [...path, name]);
    }
    for (const name of names) {
      const fields = [shape.needed, shape.optional].find((each) => Object.hasOwn(each, name));
      if (fields === undefined) refuse('UNKNOWN_FIELD', 'is not a field that is known here', [...path, name]);
      else checkBody(value[name], fields[name] as Rule, [...path, name]);
    }
  }
}
