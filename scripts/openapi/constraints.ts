/** The protos' rules for fields, beyond their types, as JSON Schema. */
import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { type Constraints, constraintsOf, exclusiveFields } from '../../src/domain/field-rules.ts';

/** A JSON Schema, or a part of one. */
export type Schema = { readonly [keyword: string]: unknown };

/** The constraints of one field. */
export function fieldConstraints(field: DescField): Schema {
  return schemaOf(constraintsOf(field));
}

// Lists have no `uniqueItems`: code generators make sets of such lists, and the order of a catalog's choices is
// promised. `wholeConstraints` has it for requests. `version` has no `default`, which generators of types take for
// "always there"; its description states the default.
function schemaOf({ string = {}, repeated, int32, double, map }: Constraints): Schema {
  const number = int32 ?? double;
  return defined({
    minLength: count(string.minLen),
    maxLength: count(string.maxLen),
    pattern: string.pattern === undefined ? undefined : without(string.pattern, string.notIn ?? []),
    enum: string.in,
    const: string.const,
    minItems: count(repeated?.minItems),
    maxItems: count(repeated?.maxItems),
    items: repeated?.items === undefined ? undefined : { type: 'string', ...schemaOf(repeated.items) },
    minimum: number?.gte,
    maximum: number?.lte,
    additionalProperties:
      map?.values === undefined ? undefined : { type: 'number', format: 'double', ...schemaOf(map.values) },
  });
}

/**
 * The rules of a request as a whole. They are written with `if` and `then`, which code generators ignore: a `oneOf` of
 * `required` makes them drop the fields.
 */
export function wholeConstraints(message: DescMessage): Schema {
  const unique = message.fields.find((field) => constraintsOf(field).repeated?.unique === true)?.name;
  const uniqueItems = unique === undefined ? {} : { properties: { [unique]: { uniqueItems: true } } };
  const [first, second] = exclusiveFields(message);
  if (second !== undefined) {
    return {
      if: { required: [second] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
      then: { not: { required: [first] } },
      else: { required: [first], ...uniqueItems },
    };
  }
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
  return unique === undefined ? {} : { if: { required: [unique] }, then: uniqueItems };
}

/** A pattern, anchored at both ends, that does not match these values; `.` and `..` are excluded as `\.{1,2}`. */
function without(pattern: string, values: readonly string[]): string {
  const [unit = ''] = values;
  if (unit === '') return pattern;
  const repeated = values.every((value, index) => value === unit.repeat(index + 1));
  const excluded = repeated
    ? `${RegExp.escape(unit)}{1,${values.length}}`
    : `(?:${values.map((value) => RegExp.escape(value)).join('|')})`;
  return pattern.replace(/^\^/, () => `^(?!${excluded}$)`);
}

const count = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));

function defined(schema: Schema): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
}
