/**
 * Scans a unary request's message before Connect reads it, in time linear in its bytes, so that the work that Connect
 * then does is bounded: the message is strict JSON of the request's own properties, or protobuf of no more fields than
 * a request can need.
 */
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import type { BodyMeter } from '../../domain/body-limits.ts';
import { DomainError } from '../../domain/errors.ts';
import { type FieldRule, fieldRules } from '../../domain/field-rules.ts';
import { GZIP, unpack } from '../http/body.ts';
import { BodyScan, checkedValue, type JsonField, jsonKind } from '../http/request-json.ts';
import type { ObjectShape } from '../http/strict-json.ts';
import { undecodable } from './fault.ts';

/** The most fields of a protobuf, each occurrence counted, unknown ones too: many times what any request needs. */
const MAX_OCCURRENCES = 4096;

/** Scans the messages of one procedure's requests. */
export class MessageScan {
  readonly #fields: readonly (JsonField & { readonly jsonName: string })[];
  /** The bounds of lists, by the numbers of their fields. */
  readonly #lists = new Map<number, NonNullable<FieldRule['items']>>();
  readonly #wireTypes: ReadonlyMap<number, readonly WireType[]>;
  readonly #body: BodyScan;

  constructor(desc: DescMessage) {
    const rules = fieldRules(desc);
    this.#fields = desc.fields.flatMap((field) => {
      const kind = jsonKind(field);
      const { name, jsonName } = field;
      return kind === undefined ? [] : [{ name, jsonName, kind, rule: rules[name] ?? {} }];
    });
    const shape: ObjectShape = new Map(
      this.#fields.flatMap(({ name, jsonName, kind }) => [name, jsonName].map((each) => [each, kind] as const)),
    );
    for (const { number, name, fieldKind } of desc.fields) {
      const items = fieldKind === 'list' ? rules[name]?.items : undefined;
      if (items !== undefined) this.#lists.set(number, items);
    }
    this.#wireTypes = new Map(desc.fields.map((field) => [field.number, wireTypesOf(field)]));
    this.#body = new BodyScan(this.#fields, shape);
  }

  /**
   * Scans all messages of a whole body. What cannot be taken apart (an envelope that is cut off, a compression that is
   * not supported) is left for Connect to refuse. @throws DomainError.
   */
  all(body: Uint8Array, form: BodyForm): void {
    const messages = form.grpc ? enveloped(body) : [{ message: body, compressed: false }];
    for (const { message, compressed } of messages) {
      if (compressed) continue;
      if (form.json) this.json(message);
      else this.protobuf(message);
    }
  }

  /** Scans one message of JSON. @throws DomainError. */
  json(message: Uint8Array): void {
    const values = strictly(() => this.#body.values(message));
    for (const field of this.#fields) {
      const value = values.get(field.name);
      if (value !== undefined) checkedValue(field, value);
    }
  }

  /** Scans one protobuf. @throws DomainError. */
  protobuf(message: Uint8Array): void {
    const counts = countFields(message, this.#wireTypes);
    if (counts.all <= MAX_OCCURRENCES) return;
    for (const [number, items] of this.#lists) {
      const fault = items(counts.of(number));
      if (fault !== undefined && counts.of(number) > 0) throw fault;
    }
    throw new DomainError('INVALID_MESSAGE', `the message has more than ${MAX_OCCURRENCES} fields`);
  }
}

/** Over RPC, a message that is not JSON is one that cannot be decoded. */
function strictly<T>(scan: () => T): T {
  try {
    return scan();
  } catch (error) {
    if (!(error instanceof DomainError) || error.reason !== 'INVALID_JSON') throw error;
    throw new DomainError('INVALID_MESSAGE', `the message cannot be decoded: ${error.message}`);
  }
}

/** Fields with lower numbers are counted separately; requests have no others. */
const COUNTED = 16;

/** The wire types that a field of a message may have. */
function wireTypesOf(field: DescField): readonly WireType[] {
  if (field.fieldKind === 'map') return [WireType.LengthDelimited];
  if (field.fieldKind === 'list' && field.listKind !== 'message') {
    // Numbers may come one by one or packed, whatever the field declares.
    const one = field.listKind === 'enum' ? WireType.Varint : scalarWireType(field.scalar);
    return [one, WireType.LengthDelimited];
  }
  if (field.message !== undefined) return [field.delimitedEncoding ? WireType.StartGroup : WireType.LengthDelimited];
  return [field.fieldKind === 'scalar' ? scalarWireType(field.scalar) : WireType.Varint];
}

function scalarWireType(scalar: ScalarType): WireType {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}

/**
 * Counts the fields of a protobuf, those within unknown groups too, up to its end, to where they are too many, or to
 * where it is malformed, which Connect then finds at once. It uses the library's own reader, so that both see the same
 * fields; and since the library reads a known field as it is declared, whatever its wire type, a field with another
 * wire type is refused here. @throws DomainError.
 */
function countFields(
  message: Uint8Array,
  wireTypes: ReadonlyMap<number, readonly WireType[]>,
): { readonly all: number; of(number: number): number } {
  const counts = new Uint32Array(COUNTED);
  const reader = new BinaryReader(message);
  let all = 0;
  let groups = 0;
  const readOne = (): boolean => {
    const [number, wireType] = reader.tag();
    all += 1;
    if (groups === 0) {
      if (number < COUNTED) counts[number] = (counts[number] as number) + 1;
      if (wireTypes.get(number)?.includes(wireType) === false) {
        throw new DomainError('INVALID_MESSAGE', `the message has field ${number} with the wire type ${wireType}`);
      }
    }
    if (wireType === WireType.StartGroup) groups += 1;
    else if (wireType === WireType.EndGroup) groups -= 1;
    else reader.skip(wireType);
    return groups >= 0;
  };
  try {
    while (reader.pos < reader.len && all <= MAX_OCCURRENCES && readOne());
  } catch (error) {
    if (error instanceof DomainError) throw error;
  }
  return { all, of: (number) => counts[number] ?? 0 };
}

/** Bytes before each gRPC message: flags and length. */
export const ENVELOPE = 5;
/** The flag of a message that is compressed; gRPC has no other. */
const COMPRESSED = 1;

/** How a request's body is written, by its headers. */
export interface BodyForm {
  readonly grpc: boolean;
  readonly json: boolean;
  /** The compression that its headers name: of the whole body, or of enveloped messages that say so. */
  readonly compression: string | undefined;
}

/**
 * The gRPC messages of a whole body, as far as they are complete. A unary request has one; a second is refused, so any
 * more are not looked at. @throws DomainError INVALID_MESSAGE for flags that gRPC does not have, which Connect would
 * read as those of its own protocol.
 */
export function enveloped(body: Uint8Array): readonly { readonly message: Uint8Array; readonly compressed: boolean }[] {
  const found: { readonly message: Uint8Array; readonly compressed: boolean }[] = [];
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  for (let at = 0; at + ENVELOPE <= body.length && found.length < 2; ) {
    const flags = view.getUint8(at);
    if (flags > COMPRESSED) throw undecodable();
    const end = at + ENVELOPE + view.getUint32(at + 1);
    if (end > body.length) break;
    found.push({ message: body.subarray(at + ENVELOPE, end), compressed: flags === COMPRESSED });
    at = end;
  }
  return found;
}

/**
 * A whole body without compression; as it is if there is none. `meter` counts the bytes that compression had saved.
 *
 * @throws DomainError INVALID_MESSAGE if it is not gzip, BODY_TOO_LARGE if a message becomes too large, and what
 * `meter` finds.
 */
export async function unpackedBody(body: Uint8Array, form: BodyForm, meter: BodyMeter): Promise<Uint8Array> {
  if (form.compression !== GZIP || body.length === 0) return body;
  if (!form.grpc) return await unpack(body, meter, notGzip);
  const parts: Uint8Array[] = [];
  let taken = 0;
  for (const { message, compressed } of enveloped(body)) {
    // Connect reads a compressed message without any bytes, too.
    const plain = compressed && message.length > 0 ? await unpack(message, meter, notGzip) : message;
    const envelope = Buffer.alloc(ENVELOPE);
    envelope.writeUInt32BE(plain.length, 1);
    parts.push(envelope, plain);
    taken += ENVELOPE + message.length;
  }
  return Buffer.concat([...parts, body.subarray(taken)]);
}

const notGzip = (): DomainError => new DomainError('INVALID_MESSAGE', 'the message is not gzip');
