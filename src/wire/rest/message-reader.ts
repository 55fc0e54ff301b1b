/**
 * From a JSON object to a request message, by the message's descriptor: names as in the proto (snake_case, no camelCase alias), no unknown
 * property, no null, no coercion. The first fault is reported in this order: an unknown property, a property given twice, then the fields in the
 * proto's order, which is the contract's, each by its presence, its type and its own rule.
 */
import { create, type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import { DomainError } from '../../domain/errors.ts';
import type { FieldRule, RequestRules } from '../../service/field-rules.ts';
import type { JsonObject } from './strict-json.ts';

/** Reads a body into a message. `bound` holds the fields that the path already gave, which the body must not name. */
export type MessageReader = (
  body: JsonObject,
  duplicate: string | undefined,
  bound: ReadonlyMap<string, string>,
) => Message;

interface FieldReader {
  readonly name: string;
  readonly localName: string;
  readonly rule: FieldRule;
  readonly typeFault: (value: unknown) => string | undefined;
}

/** A caller of another service's API is told so, since its mistake is not in one property. */
const OTHER_DIALECT = new Set(['questions', 'state', 'messages', 'prompt', 'labels', 'candidate_labels']);
const DIALECT_HINT = 'this API takes model, input, instruction and either choices or catalog';
const MAX_PARAM = 128;

/** Compiles a reader. @throws Error naming a field whose kind requests do not have. */
export function compileMessageReader(desc: DescMessage, rules: RequestRules): MessageReader {
  const fields = desc.fields.map((field) => compileField(desc, field, rules[field.name] ?? {}));
  const names = new Set(fields.map((field) => field.name));
  return (body, duplicate, bound) => {
    for (const name of Object.keys(body)) {
      if (!names.has(name) || bound.has(name)) throw unknownField(name);
    }
    if (duplicate !== undefined) {
      throw new DomainError('DUPLICATE_FIELD', `${duplicate} is given more than once`, { param: duplicate });
    }
    const message = create(desc) as Message & Record<string, unknown>;
    const presence = { has: (name: string) => bound.has(name) || Object.hasOwn(body, name) };
    for (const { name, localName, rule, typeFault } of fields) {
      const fault = rule.presence?.(presence);
      if (fault !== undefined) throw fault;
      if (!presence.has(name)) continue;
      const value = bound.has(name) ? bound.get(name) : body[name];
      const wrong = typeFault(value);
      if (wrong !== undefined)
        throw new DomainError(rule.wrongType ?? 'INVALID_TYPE', `${name} must be ${wrong}`, { param: name });
      const refused = rule.value?.(value as never);
      if (refused !== undefined) throw refused;
      message[localName] = value;
    }
    return message;
  };
}

function compileField(desc: DescMessage, field: DescField, rule: FieldRule): FieldReader {
  const { name, localName } = field;
  if (field.fieldKind === 'scalar' && field.scalar === ScalarType.STRING) {
    return { name, localName, rule, typeFault: (value) => (typeof value === 'string' ? undefined : 'a string') };
  }
  if (field.fieldKind === 'list' && field.listKind === 'scalar' && field.scalar === ScalarType.STRING) {
    return { name, localName, rule, typeFault: (value) => (isStrings(value) ? undefined : 'an array of strings') };
  }
  throw new Error(`${desc.typeName}.${name}: requests hold strings and lists of strings only`);
}

function isStrings(value: unknown): value is readonly string[] {
  if (!Array.isArray(value)) return false;
  for (let index = 0; index < value.length; index += 1) if (typeof value[index] !== 'string') return false;
  return true;
}

function unknownField(name: string): DomainError {
  const shown = name.length > MAX_PARAM ? `${name.slice(0, MAX_PARAM)}…` : name;
  const message = OTHER_DIALECT.has(name)
    ? `${shown} is not a property here: ${DIALECT_HINT}`
    : `${shown} is not a property of this request`;
  return new DomainError('UNKNOWN_FIELD', message, { param: shown });
}
