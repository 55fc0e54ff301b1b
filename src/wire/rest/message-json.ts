/**
 * Messages as JSON, by their descriptors: names as in the proto (snake_case, no camelCase alias). Of a request no
 * unknown property, no null and no coercion. The first property that is unknown, given twice or nests too deep is
 * reported before any other fault. Of the other faults, the first in the proto's order of fields, which is the
 * contract's, is reported; each field is judged by its presence, its type, its number of items and its own rule. Of a
 * response every field is written, enum values in lower case without their prefix (`ready`), maps keyed by the original
 * strings.
 */
import { create, type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import { type FieldRule, fieldRules } from '../../domain/field-rules.ts';
import { BodyScan, checkedValue, type JsonField, jsonKind } from '../http/request-json.ts';
import type { BodyValue } from '../http/strict-json.ts';

interface FieldReader extends JsonField {
  readonly localName: string;
}

const NO_BODY: ReadonlyMap<string, BodyValue> = new Map();

/** Reads the requests of one kind of message. */
export class MessageReader {
  readonly #desc: DescMessage;
  readonly #fields: readonly FieldReader[];
  readonly #scan: BodyScan;

  /** A body must not name the fields `inPath`. @throws Error naming a field whose kind requests do not have. */
  constructor(desc: DescMessage, inPath: ReadonlySet<string> = new Set()) {
    const rules = fieldRules(desc);
    this.#desc = desc;
    this.#fields = desc.fields.map((field) => readerOf(desc, field, rules[field.name] ?? {}));
    this.#scan = new BodyScan(this.#fields.filter(({ name }) => !inPath.has(name)));
  }

  /**
   * Reads a body into a message; undefined for a request without one. `bound` holds the fields that the path gave.
   * @throws DomainError.
   */
  read(body: Uint8Array | undefined, bound: ReadonlyMap<string, string>): Message {
    const values = body === undefined ? NO_BODY : this.#scan.values(body);
    const message = create(this.#desc) as Message & Record<string, unknown>;
    const present = bound.size === 0 ? values : new Set([...bound.keys(), ...values.keys()]);
    for (const field of this.#fields) {
      const { name, localName, rule } = field;
      const fault = rule.presence?.(present);
      if (fault !== undefined) throw fault;
      if (!present.has(name)) continue;
      const value = bound.get(name) ?? checkedValue(field, values.get(name)).read();
      const refused = rule.value?.(value as never);
      if (refused !== undefined) throw refused;
      message[localName] = value;
    }
    return message;
  }
}

function readerOf(desc: DescMessage, field: DescField, rule: FieldRule): FieldReader {
  const { name, localName } = field;
  const kind = jsonKind(field);
  if (kind === undefined) throw new Error(`${desc.typeName}.${name}: requests hold strings and lists of strings only`);
  return { name, localName, rule, kind };
}

type ValueWriter = (value: unknown) => string;
type Properties = Readonly<Record<string, unknown>>;

/** Writes one kind of message. */
export class MessageWriter {
  readonly #fields: readonly { readonly localName: string; readonly name: string; readonly write: ValueWriter }[];

  /** @throws Error naming a field whose kind responses do not have. */
  constructor(desc: DescMessage) {
    this.#fields = desc.fields.map((field) => ({
      localName: field.localName,
      name: JSON.stringify(field.name),
      write: writerOf(desc, field),
    }));
  }

  /** The JSON of a message, or of an initialiser of one. */
  write(message: object): string {
    const properties = this.#fields.map(
      ({ localName, name, write }) => `${name}:${write((message as Properties)[localName])}`,
    );
    return `{${properties.join()}}`;
  }
}

function writerOf(desc: DescMessage, field: DescField): ValueWriter {
  switch (field.fieldKind) {
    case 'scalar': {
      const write = scalarWriter(field.scalar);
      const absent = field.scalar === ScalarType.STRING ? '' : 0;
      if (write !== undefined) return (value) => write(value ?? absent);
      break;
    }
    case 'enum': {
      const names = new Map(
        field.enum.values.map((value) => [value.number, JSON.stringify(value.localName.toLowerCase())]),
      );
      return (value) => names.get((value as number | undefined) ?? 0) ?? 'null';
    }
    case 'message': {
      const writer = new MessageWriter(field.message);
      return (value) => (value === undefined ? 'null' : writer.write(value as object));
    }
    case 'list': {
      const item = field.listKind === 'message' ? new MessageWriter(field.message) : undefined;
      const write = item === undefined ? scalarWriter(field.scalar) : (each: unknown) => item.write(each as object);
      if (write !== undefined) return (values) => `[${((values ?? []) as readonly unknown[]).map(write).join()}]`;
      break;
    }
    case 'map':
      if (field.mapKey === ScalarType.STRING && field.mapKind === 'scalar' && field.scalar === ScalarType.DOUBLE) {
        return (map) => JSON.stringify(map ?? {});
      }
      break;
  }
  throw new Error(`${desc.typeName}.${field.name}: responses have no field of this kind`);
}

function scalarWriter(scalar: ScalarType | undefined): ValueWriter | undefined {
  if (scalar === ScalarType.STRING) return (value) => JSON.stringify(value);
  // An int32 here is a count and a double a probability: neither is ever NaN or infinite, for which JSON has no number.
  if (scalar === ScalarType.INT32 || scalar === ScalarType.DOUBLE) return String;
  return undefined;
}
