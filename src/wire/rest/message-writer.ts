/**
 * From a response message to JSON text, by the message's descriptor: names as in the proto (snake_case), every field emitted, enum values in
 * lower case without their prefix (`ready`), maps keyed by the original strings, probabilities with all of their six decimals.
 */
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { type MapEntries, mapEntries, type WithMapEntries } from '../../service/map-entries.ts';
import { decimalText } from './decimal-text.ts';

/** Writes a message, or an initialiser of one, as JSON text. */
export type MessageWriter = (message: object) => string;

type ValueWriter = (value: unknown) => string;
type Properties = Readonly<Record<string, unknown>>;

/** Compiles a writer. @throws Error naming a field whose kind responses do not have. */
export function compileMessageWriter(desc: DescMessage): MessageWriter {
  const fields = desc.fields.map((field, index) => ({
    prefix: `${index === 0 ? '{' : ','}"${field.name}":`,
    write: compileField(desc, field),
  }));
  if (fields.length === 0) return () => '{}';
  return (message) => {
    let text = '';
    for (const { prefix, write } of fields) text += prefix + write(message);
    return `${text}}`;
  };
}

function compileField(desc: DescMessage, field: DescField): MessageWriter {
  const { localName } = field;
  const of = (write: ValueWriter, absent: unknown): MessageWriter => {
    return (message) => write((message as Properties)[localName] ?? absent);
  };
  switch (field.fieldKind) {
    case 'scalar': {
      const write = scalarWriter(field.scalar);
      if (write !== undefined) return of(write, field.scalar === ScalarType.STRING ? '' : 0);
      break;
    }
    case 'enum': {
      const names = new Map(
        field.enum.values.map((value) => [value.number, JSON.stringify(value.localName.toLowerCase())]),
      );
      return of((value) => names.get(value as number) ?? 'null', 0);
    }
    case 'message': {
      const write = compileMessageWriter(field.message);
      return of((value) => (value === null ? 'null' : write(value as object)), null);
    }
    case 'list': {
      const write = field.listKind === 'message' ? compileMessageWriter(field.message) : scalarWriter(field.scalar);
      if (write !== undefined)
        return of((value) => `[${(value as object[]).map(write as MessageWriter).join(',')}]`, []);
      break;
    }
    case 'map':
      if (field.mapKey === ScalarType.STRING && field.mapKind === 'scalar' && field.scalar === ScalarType.DOUBLE) {
        return (message) => {
          const entries =
            (message as Partial<WithMapEntries>)[mapEntries] ?? entriesOf((message as Properties)[localName]);
          return entriesText(entries);
        };
      }
      break;
  }
  throw new Error(`${desc.typeName}.${field.name}: responses have no field of this kind`);
}

function scalarWriter(scalar: ScalarType | undefined): ValueWriter | undefined {
  if (scalar === ScalarType.STRING) return (value) => JSON.stringify(value);
  if (scalar === ScalarType.INT32) return (value) => String(value);
  if (scalar === ScalarType.DOUBLE) return (value) => decimalText(value as number);
  return undefined;
}

function entriesOf(map: unknown): MapEntries {
  const pairs = Object.entries((map ?? {}) as Record<string, number>);
  return { keys: pairs.map(([key]) => key), values: Float64Array.from(pairs, ([, value]) => value) };
}

// The keys of a list of choices that was recognised are the same array with every request, so their JSON text is made once.
const keyTexts = new WeakMap<readonly string[], readonly string[]>();

function entriesText({ keys, values }: MapEntries): string {
  let texts = keyTexts.get(keys);
  if (texts === undefined) {
    texts = keys.map((key, index) => `${index === 0 ? '{' : ','}${JSON.stringify(key)}:`);
    keyTexts.set(keys, texts);
  }
  let text = texts.length === 0 ? '{' : '';
  for (let index = 0; index < texts.length; index += 1) {
    text += (texts[index] as string) + decimalText(values[index] as number);
  }
  return `${text}}`;
}
