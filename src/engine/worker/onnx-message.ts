/** Moves the external data of an ONNX file, a protobuf message, without knowing the rest of its schema. */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

// The fields of ONNX's messages that say where weights lie.
const MODEL_GRAPH = 7;
const GRAPH_INITIALIZER = 5;
const TENSOR_EXTERNAL_DATA = 13;
const [ENTRY_KEY, ENTRY_VALUE] = [1, 2];

/** Says where bytes lie from now on. */
export type Move = (from: number, length: number) => number;

/**
 * The model with its external data in the file `location`, each tensor and each of its packed forms where `move` puts
 * it. Throws if it is no model.
 */
export function withMovedWeights(model: Uint8Array, location: string, move: Move): Uint8Array {
  return mapMessage(model, MODEL_GRAPH, (graph) =>
    mapMessage(graph, GRAPH_INITIALIZER, (tensor) => {
      const entries = new Map<string, string>();
      const writer = new BinaryWriter();
      writer.raw(
        mapMessage(tensor, TENSOR_EXTERNAL_DATA, (entry) => {
          const texts = new Map<number, string>();
          for (const reader = new BinaryReader(entry); reader.pos < reader.len; )
            texts.set(reader.tag()[0], reader.string());
          entries.set(texts.get(ENTRY_KEY) ?? '', texts.get(ENTRY_VALUE) ?? '');
          return undefined;
        }),
      );
      for (const [key, value] of moved(entries, location, move)) {
        writer.tag(TENSOR_EXTERNAL_DATA, WireType.LengthDelimited).fork();
        writer.tag(ENTRY_KEY, WireType.LengthDelimited).string(key);
        writer.tag(ENTRY_VALUE, WireType.LengthDelimited).string(value).join();
      }
      return writer.finish();
    }),
  );
}

/** A packed form is written as `<kernel>|<offset>;<length>;<checksum>|…`. */
function moved(entries: ReadonlyMap<string, string>, location: string, move: Move): readonly [string, string][] {
  return [...entries].map(([key, value]) => {
    if (key === 'location') return [key, location];
    if (key === 'offset') return [key, String(move(Number(value), Number(entries.get('length'))))];
    if (!key.startsWith('prepacked_')) return [key, value];
    const place = /(?<=\|)(\d+);(\d+)/g;
    return [key, value.replace(place, (_, from, length) => `${move(Number(from), Number(length))};${length}`)];
  });
}

/** The message with the content of each `field` replaced, or left out; it must be bytes or another message. */
function mapMessage(
  message: Uint8Array,
  field: number,
  change: (content: Uint8Array) => Uint8Array | undefined,
): Uint8Array {
  const reader = new BinaryReader(message);
  const writer = new BinaryWriter();
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (number !== field) writer.tag(number, type).raw(reader.skip(type, number));
    else {
      const content = change(reader.bytes());
      if (content !== undefined) writer.tag(number, type).bytes(content);
    }
  }
  return writer.finish();
}
