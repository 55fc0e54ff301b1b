/** Writes small ONNX graphs by hand: the few messages of onnx.proto that they need, field by field. */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

/** An initialiser: float32 or int64 values of a shape. */
export interface Constant {
  readonly name: string;
  readonly dims: readonly number[];
  readonly values: Float32Array | BigInt64Array;
}

/** An operator; attributes are integers, lists of integers or floats by name. */
export interface Operator {
  readonly type: string;
  readonly inputs: readonly string[];
  readonly output: string;
  readonly attributes?: Readonly<Record<string, number | readonly number[] | { readonly float: number }>>;
}

/** One graph; `input_ids` is its input, int64 [1, tokens]. */
export interface GraphSource {
  readonly constants: readonly Constant[];
  readonly operators: readonly Operator[];
  /** The float32 output: [1, width], [1, tokens, width], or one dimension of that name. */
  readonly output: { readonly name: string; readonly width: number | string; readonly perToken?: boolean };
  /** Further int64 inputs of the shape of `input_ids`. */
  readonly inputs?: readonly string[];
  /** Whether there is an int64 input `markers` [options]. */
  readonly markers?: boolean;
}

const FLOAT_TYPE = 1;
const INT64_TYPE = 7;

/** The bytes of a model that ONNX Runtime loads. */
export function onnxModel(source: GraphSource): Uint8Array {
  const model = new BinaryWriter();
  integer(model, 1, 8);
  message(model, 8, (opset) => {
    text(opset, 1, '');
    integer(opset, 2, 17);
  });
  message(model, 7, (graph) => {
    for (const operator of source.operators) message(graph, 1, (node) => writeOperator(node, operator));
    text(graph, 2, 'graph');
    for (const constant of source.constants) message(graph, 5, (tensor) => writeConstant(tensor, constant));
    for (const name of ['input_ids', ...(source.inputs ?? [])]) {
      message(graph, 11, (value) => writeValue(value, name, INT64_TYPE, [1, 'tokens']));
    }
    if (source.markers === true) message(graph, 11, (value) => writeValue(value, 'markers', INT64_TYPE, ['options']));
    const { name, width, perToken } = source.output;
    const shape = typeof width !== 'number' ? [width] : perToken === true ? [1, 'tokens', width] : [1, width];
    message(graph, 12, (value) => writeValue(value, name, FLOAT_TYPE, shape));
  });
  return model.finish();
}

function writeOperator(node: BinaryWriter, { type, inputs, output, attributes = {} }: Operator): void {
  for (const input of inputs) text(node, 1, input);
  text(node, 2, output);
  text(node, 3, output);
  text(node, 4, type);
  for (const [name, value] of Object.entries(attributes)) {
    message(node, 5, (attribute) => {
      text(attribute, 1, name);
      if (typeof value === 'number') {
        integer(attribute, 3, value);
        integer(attribute, 20, 2);
      } else if ('float' in value) {
        attribute.tag(2, WireType.Bit32).float(value.float);
        integer(attribute, 20, 1);
      } else {
        for (const each of value) integer(attribute, 8, each);
        integer(attribute, 20, 7);
      }
    });
  }
}

function writeConstant(tensor: BinaryWriter, { name, dims, values }: Constant): void {
  for (const dim of dims) integer(tensor, 1, dim);
  integer(tensor, 2, values instanceof Float32Array ? FLOAT_TYPE : INT64_TYPE);
  text(tensor, 8, name);
  tensor.tag(9, WireType.LengthDelimited).bytes(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
}

function writeValue(value: BinaryWriter, name: string, type: number, shape: readonly (number | string)[]): void {
  text(value, 1, name);
  message(value, 2, (typeProto) => {
    message(typeProto, 1, (tensor) => {
      integer(tensor, 1, type);
      message(tensor, 2, (shapeProto) => {
        for (const dim of shape) {
          message(shapeProto, 1, (dimension) => {
            if (typeof dim === 'number') integer(dimension, 1, dim);
            else text(dimension, 2, dim);
          });
        }
      });
    });
  });
}

function integer(writer: BinaryWriter, field: number, value: number): void {
  writer.tag(field, WireType.Varint).int64(value);
}

function text(writer: BinaryWriter, field: number, value: string): void {
  writer.tag(field, WireType.LengthDelimited).string(value);
}

function message(writer: BinaryWriter, field: number, write: (inner: BinaryWriter) => void): void {
  writer.tag(field, WireType.LengthDelimited).fork();
  write(writer);
  writer.join();
}
