/** Changes parts of an ONNX file, a protobuf message, without knowing the rest of its schema. */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

/**
 * The message with the content of each `field` replaced, which must be a text, bytes or another message. Throws if it is
 * no message.
 */
export function mapMessage(
  message: Uint8Array,
  field: number,
  change: (content: Uint8Array) => Uint8Array,
): Uint8Array {
  const reader = new BinaryReader(message);
  const writer = new BinaryWriter();
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    writer.tag(number, type);
    if (number === field && type === WireType.LengthDelimited) writer.bytes(change(reader.bytes()));
    else writer.raw(reader.skip(type, number));
  }
  return writer.finish();
}
