/**
 * From a response message to JSON text, by the message's descriptor: names as in the proto (snake_case), every field emitted, enum values in
 * lower case without their prefix (`ready`), maps keyed by the original strings.
 */
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';

/** Writes a message, or an initialiser of one, as JSON text. */
export type MessageWriter = (message: object) => string;

type ValueWriter = (value: unknown) => string;

const string: ValueWriter = (value) => JSON.stringify(value);
const number: ValueWriter = (value) => String(value);

/** Compiles a writer. @throws Error naming a field whose kind responses do not have. */
export function compileMessageWriter(desc: DescMessage): MessageWriter {
  const fields = desc.fields.map((field, index) => ({
    prefix: `${index === 0 ? '{' : ','}"${field.name}":`,
    localName: field.localName,
    write: compileField(desc, field),
  }));
  if (fields.length === 0) return () => '{}';
  return (message) => {
    let text = '';
    for (const { prefix, localName, write } of fields) {
      text += prefix + write((message as Record<string, unknown>)[localName]);
    }
    return `${text}}`;
  };
}

function compileField(desc: DescMessage, field: DescField): ValueWriter {
  switch (field.fieldKind) {
    case 'scalar': {
      const write = scalarWriter(field.scalar);
      const zero = field.scalar === ScalarType.STRING ? '' : 0;
      if (write !== undefined) return (value) => write(value ?? zero);
      break;
    }
    case 'enum': {
      const names = new Map(
        field.enum.values.map((value) => [value.number, JSON.stringify(value.localName.toLowerCase())]),
      );
      return (value) => names.get((value ?? 0) as number) ?? 'null';
    }
    case 'message': {
      const write = compileMessageWriter(field.message);
      return (value) => (value === undefined ? 'null' : write(value as object));
    }
    case 'list': {
      const write = field.listKind === 'message' ? compileMessageWriter(field.message) : scalarWriter(field.scalar);
      if (write !== undefined)
        return (value) => `[${((value ?? []) as object[]).map(write as MessageWriter).join(',')}]`;
      break;
    }
    case 'map': {
      const write = field.mapKind === 'scalar' ? scalarWriter(field.scalar) : undefined;
      if (write !== undefined && field.mapKey === ScalarType.STRING)
        return (value) => mapText((value ?? {}) as object, write);
      break;
    }
  }
  throw new Error(`${desc.typeName}.${field.name}: responses have no field of this kind`);
}

function mapText(map: object, write: ValueWriter): string {
  let text = '';
  for (const key of Object.keys(map)) {
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${write((map as Record<string, unknown>)[key])}`;
  }
  return `{${text}}`;
}

function scalarWriter(scalar: ScalarType | undefined): ValueWriter | undefined {
  if (scalar === ScalarType.STRING) return string;
  // A double here is a probability and an int32 a count: neither is ever NaN or infinite, for which JSON has no number.
  if (scalar === ScalarType.DOUBLE || scalar === ScalarType.INT32) return number;
  return undefined;
}
