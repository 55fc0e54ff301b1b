/**
 * Goes through a unary request's message before Connect reads it, in time linear in its bytes, so that what Connect then makes of it is bounded: strict
 * JSON of the request's own properties, or protobuf of no more fields than a request can need.
 */
import type { DescMessage } from '@bufbuild/protobuf';
import { DomainError } from '../../domain/errors.ts';
import { fieldRules } from '../../domain/field-rules.ts';
import { checkedValue, compileBodyScan, jsonKind } from '../http/request-json.ts';
import type { ObjectShape } from '../http/strict-json.ts';

/** Scans the message of one procedure's request. @throws DomainError. */
export interface MessageScan {
  json(message: Uint8Array): void;
  protobuf(message: Uint8Array): void;
}

/** Fields that a protobuf may have, each occurrence counted, unknown ones too: many times as many as any request's. */
const MAX_OCCURRENCES = 4096;

/** Compiles a scan. */
export function compileMessageScan(desc: DescMessage): MessageScan {
  const rules = fieldRules(desc);
  const fields = desc.fields.flatMap((field) => {
    const kind = jsonKind(field);
    const { name, jsonName } = field;
    return kind === undefined ? [] : [{ name, jsonName, kind, rule: rules[name] ?? {} }];
  });
  const shape: ObjectShape = new Map(
    fields.flatMap(({ name, jsonName, kind }) => [name, jsonName].map((each) => [each, kind] as const)),
  );
  const lists = desc.fields.flatMap(({ number, name, fieldKind }) => {
    const items = fieldKind === 'list' ? rules[name]?.items : undefined;
    return items === undefined ? [] : [{ number, items }];
  });
  const scan = compileBodyScan(fields, shape);

  return {
    json(message) {
      const values = strictly(() => scan(message));
      for (const field of fields) {
        const value = values.get(field.name);
        if (value !== undefined) checkedValue(field, value);
      }
    },
    protobuf(message) {
      const counts = countFields(message);
      if (counts.all <= MAX_OCCURRENCES) return;
      for (const { number, items } of lists) {
        const fault = items(counts.of(number));
        if (fault !== undefined && counts.of(number) > 0) throw fault;
      }
      throw new DomainError('INVALID_MESSAGE', `the message has more than ${MAX_OCCURRENCES} fields`);
    },
  };
}

/** JSON that is none is a message that cannot be decoded, over RPC. */
function strictly<T>(scan: () => T): T {
  try {
    return scan();
  } catch (error) {
    if (!(error instanceof DomainError) || error.reason !== 'INVALID_JSON') throw error;
    throw new DomainError('INVALID_MESSAGE', `the message cannot be decoded: ${error.message}`);
  }
}

/** Field numbers that are counted apart; requests have no higher ones. */
const COUNTED = 16;

/** Counts the fields of a protobuf up to its end, to where they are too many, or to where it is malformed, which Connect then finds at once. */
function countFields(message: Uint8Array): { readonly all: number; of(number: number): number } {
  const counts = new Uint32Array(COUNTED);
  let all = 0;
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = message[at];
      if (byte === undefined) return Number.NaN;
      at += 1;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    return Number.NaN;
  };
  while (at < message.length && all <= MAX_OCCURRENCES) {
    const tag = varint();
    const number = Math.floor(tag / 8);
    all += 1;
    if (number < COUNTED) counts[number] = (counts[number] as number) + 1;
    const type = tag % 8;
    if (type === 0) varint();
    else if (type === 1) at += 8;
    else if (type === 2) {
      const length = varint();
      at += length;
    } else if (type === 5) at += 4;
    // Groups are counted as they open and close; any other type ends the reading.
    else if (type !== 3 && type !== 4) break;
    if (Number.isNaN(at)) break;
  }
  return { all, of: (number) => counts[number] ?? 0 };
}

/** Bytes before a message of gRPC's: flags and length. */
export const ENVELOPE = 5;
/** The flag of one that is compressed. */
const COMPRESSED = 1;

/** How a request's body is written, by its headers. */
export interface BodyForm {
  readonly grpc: boolean;
  readonly json: boolean;
  /** The compression that its headers name: of the whole body, or of enveloped messages that say so. */
  readonly compression: string | undefined;
}

/**
 * Scans all messages of a whole body. What cannot be taken apart (an envelope that is cut off, a compression that is not taken) is left for Connect to
 * refuse. @throws DomainError.
 */
export function scanMessages(scan: MessageScan, body: Uint8Array, form: BodyForm): void {
  const messages = form.grpc ? enveloped(body) : [{ message: body, compressed: false }];
  for (const { message, compressed } of messages) {
    if (compressed) continue;
    if (form.json) scan.json(message);
    else scan.protobuf(message);
  }
}

/** The messages of gRPC in a whole body, as far as they are whole. A unary request has one; a second is refused, and any more are not looked at. */
export function enveloped(body: Uint8Array): readonly { readonly message: Uint8Array; readonly compressed: boolean }[] {
  const found: { readonly message: Uint8Array; readonly compressed: boolean }[] = [];
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  for (let at = 0; at + ENVELOPE <= body.length && found.length < 2; ) {
    const end = at + ENVELOPE + view.getUint32(at + 1);
    if (end > body.length) break;
    found.push({ message: body.subarray(at + ENVELOPE, end), compressed: view.getUint8(at) === COMPRESSED });
    at = end;
  }
  return found;
}
