/**
 * From a JSON body to a request message, by the message's descriptor: names as in the proto (snake_case, no camelCase alias), no unknown
 * property, no null, no coercion. A property that is unknown or given twice and a value that nests too deep are reported where they stand; else the first
 * fault of the fields in the proto's order, which is the contract's, each by its presence, its type, its number of items and its own rule.
 */
import { create, type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import { DomainError } from '../../domain/errors.ts';
import { type FieldRule, fieldRules } from '../../domain/field-rules.ts';
import { type BodyValue, type ObjectShape, type ScannedBody, scanBody } from './strict-json.ts';

/** Reads a body into a message; undefined for a request without one. `bound` holds the fields that the path gave. */
export type MessageReader = (body: Uint8Array | undefined, bound: ReadonlyMap<string, string>) => Message;

interface FieldReader {
  readonly name: string;
  readonly localName: string;
  readonly rule: FieldRule;
  readonly kind: 'string' | 'strings';
}

const MAX_PARAM = 128;

const NO_BODY: ScannedBody = { kind: 'object', values: new Map() };

/** Compiles a reader. A body must not name the fields `inPath`. @throws Error naming a field whose kind requests do not have. */
export function compileMessageReader(desc: DescMessage, inPath: ReadonlySet<string> = new Set()): MessageReader {
  const rules = fieldRules(desc);
  const fields = desc.fields.map((field) => compileField(desc, field, rules[field.name] ?? {}));
  const shape: ObjectShape = new Map(
    fields.filter(({ name }) => !inPath.has(name)).map(({ name, kind }) => [name, kind]),
  );
  const fieldNames = [...shape.keys()];
  return (bytes, bound) => {
    const body = bytes === undefined ? NO_BODY : scanBody(bytes, shape);
    if (body.kind === 'unknown') throw unknownField(body.name, fieldNames);
    if (body.kind === 'nested')
      throw wrongType(
        fields.find(({ name }) => name === body.name),
        body.place,
      );
    if (body.kind === 'duplicate') throw duplicateField(body.name);
    const message = create(desc) as Message & Record<string, unknown>;
    const presence = { has: (name: string) => bound.has(name) || body.values.has(name) };
    for (const field of fields) {
      const { name, localName, rule } = field;
      const fault = rule.presence?.(presence);
      if (fault !== undefined) throw fault;
      if (!presence.has(name)) continue;
      const value = bound.get(name) ?? fieldValue(field, body.values.get(name));
      const refused = rule.value?.(value as never);
      if (refused !== undefined) throw refused;
      message[localName] = value;
    }
    return message;
  };
}

/** What a body says of a field. @throws DomainError for a wrong type or number of items. */
function fieldValue(field: FieldReader, value: BodyValue | undefined): string | readonly string[] {
  if (value === undefined || value.kind === 'other' || value.kind !== field.kind) throw wrongType(field);
  if (value.kind === 'strings') {
    const fault = field.rule.items?.(value.items);
    if (fault !== undefined) throw fault;
  }
  return value.read();
}

function compileField(desc: DescMessage, field: DescField, rule: FieldRule): FieldReader {
  const { name, localName } = field;
  const kind = jsonKind(field);
  if (kind === undefined) throw new Error(`${desc.typeName}.${name}: requests hold strings and lists of strings only`);
  return { name, localName, rule, kind };
}

/** What JSON has for a field of a request; undefined for a field that requests do not have. */
export function jsonKind(field: DescField): 'string' | 'strings' | undefined {
  if (field.fieldKind === 'scalar' && field.scalar === ScalarType.STRING) return 'string';
  if (field.fieldKind === 'list' && field.listKind === 'scalar' && field.scalar === ScalarType.STRING) return 'strings';
  return undefined;
}

/** The fault of a value of another type; `place`: of the item that is not a string. */
export function wrongType(
  field: Pick<FieldReader, 'name' | 'rule' | 'kind'> | undefined,
  place?: number | undefined,
): DomainError {
  const { name = '', rule, kind } = field ?? {};
  const wanted = kind === 'strings' ? 'an array of strings' : 'a string';
  const found = place === undefined ? '' : `; ${name}[${place}] is not a string`;
  return new DomainError(rule?.wrongType ?? 'INVALID_TYPE', `${name} must be ${wanted}${found}`, { param: name });
}

/** The fault of a property that stands there twice. */
export function duplicateField(name: string): DomainError {
  return new DomainError('DUPLICATE_FIELD', `${name} is given more than once`, { param: name });
}

/** The fault of a property that the request does not have, with those that it has: its names are easily taken for those of another API. */
export function unknownField(name: string, fields: readonly string[]): DomainError {
  const shown = name.length > MAX_PARAM ? `${name.slice(0, MAX_PARAM)}…` : name;
  const known = fields.length === 0 ? 'none' : fields.join(', ');
  const message = `${shown} is not a property of this request, which has ${known}`;
  return new DomainError('UNKNOWN_FIELD', message, { param: shown });
}
