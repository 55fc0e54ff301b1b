/**
 * Makes the tensors of a request from rows, and numbers from the tensor of a response. Raw contents are little-endian,
 * row by row; a response may have typed ones instead.
 */
import { create } from '@bufbuild/protobuf';
import {
  type ModelInferRequest,
  ModelInferRequestSchema,
  type ModelInferResponse,
} from '../../../../../gen/inference/grpc_predict_v2_pb.ts';
import { malformed } from '../call-failed.ts';
/** An input tensor. `holds` is what integers are; undefined for texts. */
export interface InputTensor {
  readonly name: string;
  readonly datatype: 'INT64' | 'INT32' | 'BYTES';
  readonly shape: readonly number[];
  readonly holds: 'ids' | 'mask' | 'types' | undefined;
}

/** The output tensor that is read; a response may hold others. */
export interface OutputTensor {
  readonly name: string;
  readonly datatype: 'FP32' | 'FP64' | 'FP16';
  readonly shape: readonly number[];
}

/** The model at the server. An empty version leaves it to the server. */
export interface ServedModel {
  readonly model: string;
  readonly version: string;
  readonly inputs: readonly InputTensor[];
  readonly output: OutputTensor;
}

/** A row: token ids, of which token type 1 begins at `typesFrom`, or a text for each input tensor. */
export type Row = { readonly ids: readonly number[]; readonly typesFrom: number } | readonly string[];

const ENCODER = new TextEncoder();

/** Bytes that a row takes in a request, at most. */
export function rowBytes(row: Row, inputs: readonly InputTensor[]): number {
  if (!('ids' in row)) return row.reduce((sum, text) => sum + 4 + 3 * text.length, 0);
  return inputs.reduce((sum, { datatype }) => sum + row.ids.length * (datatype === 'INT64' ? 8 : 4), 0);
}

/** The request for these rows. All have the same number of ids: nothing is padded. */
export function inferRequest(
  rows: readonly Row[],
  { model, version, inputs, output }: ServedModel,
  id: string,
): ModelInferRequest {
  return create(ModelInferRequestSchema, {
    modelName: model,
    modelVersion: version,
    id,
    inputs: inputs.map(({ name, datatype, shape }) => ({
      name,
      datatype,
      shape:
        datatype === 'BYTES'
          ? [rows.length, 1].slice(0, shape.length).map(BigInt)
          : [rows.length, lengthOf(rows)].map(BigInt),
    })),
    outputs: [{ name: output.name }],
    rawInputContents: inputs.map((input, place) => contentsOf(rows, input, place)),
  });
}

function lengthOf([first]: readonly Row[]): number {
  return first !== undefined && 'ids' in first ? first.ids.length : 1;
}

function contentsOf(rows: readonly Row[], { datatype, holds }: InputTensor, place: number): Uint8Array {
  if (datatype === 'BYTES') return bytesOf(rows.map((row) => ('ids' in row ? '' : (row[place] ?? ''))));
  const length = lengthOf(rows);
  const size = datatype === 'INT64' ? 8 : 4;
  const contents = new DataView(new ArrayBuffer(rows.length * length * size));
  rows.forEach((row, r) => {
    if (!('ids' in row)) return;
    for (let i = 0; i < length; i++) {
      const value = holds === 'ids' ? (row.ids[i] as number) : holds === 'mask' || i >= row.typesFrom ? 1 : 0;
      // Ids are under 2^31, so the upper half of 64 bits stays 0.
      contents.setInt32((r * length + i) * size, value, true);
    }
  });
  return new Uint8Array(contents.buffer);
}

function bytesOf(texts: readonly string[]): Uint8Array {
  const encoded = texts.map((text) => ENCODER.encode(text));
  const contents = new Uint8Array(encoded.reduce((sum, { length }) => sum + 4 + length, 0));
  const view = new DataView(contents.buffer);
  let place = 0;
  for (const text of encoded) {
    view.setUint32(place, text.length, true);
    contents.set(text, place + 4);
    place += 4 + text.length;
  }
  return contents;
}

/**
 * The numbers of the output, all finite, and how many a row has. Throws CallFailed `malformed` for anything but the
 * tensor that was asked for.
 */
export function outputOf(
  response: ModelInferResponse,
  output: OutputTensor,
  { rows, id }: { readonly rows: number; readonly id: string },
): { readonly values: Float64Array; readonly width: number } {
  if (response.id !== '' && response.id !== id) throw malformed('the server answered another request');
  const place = response.outputs.findIndex(({ name }) => name === output.name);
  const tensor = response.outputs[place];
  if (tensor === undefined) throw malformed(`the answer has no output "${output.name}"`);
  if (tensor.datatype !== output.datatype) {
    throw malformed(
      `the output "${output.name}" has the datatype ${tensor.datatype.slice(0, 20)}, not ${output.datatype}`,
    );
  }
  const shape = tensor.shape.map(Number);
  const expected = [rows, ...output.shape.slice(1)];
  if (shape.length !== expected.length || !expected.every((size, i) => size === -1 || size === shape[i])) {
    throw malformed(`the output "${output.name}" has the shape [${shape.slice(0, 8)}], not [${expected}]`);
  }
  const width = shape.slice(1).reduce((product, size) => product * size, 1);
  const raw = response.rawOutputContents[place];
  const values = raw === undefined ? typedValues(tensor.contents, output) : rawValues(raw, output);
  if (values.length !== rows * width || values.length === 0) {
    throw malformed(`the output "${output.name}" has ${values.length} values, not ${rows} × ${width}`);
  }
  if (!values.every(Number.isFinite))
    throw malformed(`the output "${output.name}" has values that are no finite numbers`);
  return { values, width };
}

type Contents = NonNullable<ModelInferResponse['outputs'][number]['contents']>;

function typedValues(contents: Contents | undefined, { datatype }: OutputTensor): Float64Array {
  // The protocol has no field for FP16 values: they come raw.
  if (datatype === 'FP32') return Float64Array.from(contents?.fp32Contents ?? []);
  if (datatype === 'FP64') return Float64Array.from(contents?.fp64Contents ?? []);
  return new Float64Array(0);
}

const SIZES = { FP64: 8, FP32: 4, FP16: 2 } as const;

function rawValues(raw: Uint8Array, { name, datatype }: OutputTensor): Float64Array {
  const size = SIZES[datatype];
  if (raw.length % size !== 0) throw malformed(`the output "${name}" has ${raw.length} bytes`);
  const view = new DataView(raw.buffer, raw.byteOffset, raw.length);
  const values = new Float64Array(raw.length / size);
  for (let i = 0; i < values.length; i++) {
    const at = i * size;
    values[i] =
      datatype === 'FP32'
        ? view.getFloat32(at, true)
        : datatype === 'FP64'
          ? view.getFloat64(at, true)
          : view.getFloat16(at, true);
  }
  return values;
}
