/**
 * From a response message to JSON, by the message's descriptor: names as in the proto (snake_case), every field
 * emitted, enum values in lower case without their prefix (`ready`), maps keyed by the original strings.
 */
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';

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
      write: compileField(desc, field),
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

function compileField(desc: DescMessage, field: DescField): ValueWriter {
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
