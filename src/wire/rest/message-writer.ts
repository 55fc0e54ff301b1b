/**
 * From a response message to JSON, by the message's descriptor: names as in the proto (snake_case), every field emitted, enum values in lower
 * case without their prefix (`ready`), maps keyed by the original strings.
 */
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { type MapEntries, mapEntries, type WithMapEntries } from '../../service/map-entries.ts';
import type { JsonSink } from './json-sink.ts';
import { probabilityMap } from './probability-map.ts';

/** Writes a message, or an initialiser of one. */
export type MessageWriter = (message: object, sink: JsonSink) => void;

type ValueWriter = (value: unknown, sink: JsonSink) => void;
type Properties = Readonly<Record<string, unknown>>;

/** Compiles a writer. @throws Error naming a field whose kind responses do not have. */
export function compileMessageWriter(desc: DescMessage): MessageWriter {
  const fields = desc.fields.map((field, index) => ({
    prefix: `${index === 0 ? '{' : ','}"${field.name}":`,
    write: compileField(desc, field),
  }));
  if (fields.length === 0) return (_message, sink) => sink.text('{}');
  return (message, sink) => {
    for (const { prefix, write } of fields) {
      sink.text(prefix);
      write(message, sink);
    }
    sink.text('}');
  };
}

function compileField(desc: DescMessage, field: DescField): MessageWriter {
  const { localName } = field;
  const of = (write: ValueWriter, absent: unknown): MessageWriter => {
    return (message, sink) => write((message as Properties)[localName] ?? absent, sink);
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
      return of((value, sink) => sink.text(names.get(value as number) ?? 'null'), 0);
    }
    case 'message': {
      const write = compileMessageWriter(field.message);
      return of((value, sink) => (value === null ? sink.text('null') : write(value as object, sink)), null);
    }
    case 'list': {
      const write = field.listKind === 'message' ? compileMessageWriter(field.message) : scalarWriter(field.scalar);
      if (write !== undefined) return of((value, sink) => writeList(value as readonly object[], write, sink), []);
      break;
    }
    case 'map':
      if (field.mapKey === ScalarType.STRING && field.mapKind === 'scalar' && field.scalar === ScalarType.DOUBLE) {
        return (message, sink) => {
          const entries = (message as Partial<WithMapEntries>)[mapEntries];
          writeMap(entries ?? entriesOf((message as Properties)[localName]), sink);
        };
      }
      break;
  }
  throw new Error(`${desc.typeName}.${field.name}: responses have no field of this kind`);
}

function scalarWriter(scalar: ScalarType | undefined): ValueWriter | undefined {
  if (scalar === ScalarType.STRING) return (value, sink) => sink.text(JSON.stringify(value));
  // An int32 here is a count and a double a probability: neither is ever NaN or infinite, for which JSON has no number.
  if (scalar === ScalarType.INT32 || scalar === ScalarType.DOUBLE) return (value, sink) => sink.text(String(value));
  return undefined;
}

function writeList(values: readonly object[], write: MessageWriter, sink: JsonSink): void {
  sink.text('[');
  for (const [index, value] of values.entries()) {
    if (index > 0) sink.text(',');
    write(value, sink);
  }
  sink.text(']');
}

function entriesOf(map: unknown): MapEntries {
  const pairs = Object.entries((map ?? {}) as Record<string, number>);
  return { keys: pairs.map(([key]) => key), values: Float64Array.from(pairs, ([, value]) => value) };
}

/** The length from which a run of bytes is worth its own way. */
const MANY = 32;

function writeMap(entries: MapEntries, sink: JsonSink): void {
  const { keys, values } = entries;
  const run = keys.length < MANY ? undefined : probabilityMap(entries);
  if (run !== undefined) {
    sink.run(run);
    return;
  }
  sink.text('{');
  for (const [index, key] of keys.entries()) {
    sink.text(`${index === 0 ? '' : ','}${JSON.stringify(key)}:${(values[index] as number).toFixed(6)}`);
  }
  sink.text('}');
}
