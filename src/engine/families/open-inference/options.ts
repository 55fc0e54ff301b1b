/**
 * The options of the dialect `open-inference`, beside those of all dialects (remote/options.ts):
 *
 *     { "server": { "address", "tls", "token_file" or "token_env" },     see remote/server-options.ts
 *       "model": the model's name at the server, "version": its version there, if one is meant,
 *       "inputs": [{ "name", "datatype": "INT64" | "INT32" | "BYTES", "shape": [-1, …],
 *                    "holds": "ids" | "mask" | "types", for integers }],
 *       "output": { "name", "datatype": "FP32" | "FP64" | "FP16", "shape": [-1, …] },
 *       "returns": "logit", with "column" and perhaps "minus", places in a row of the output: the logit is the one
 *                  less the other,
 *                  or "embedding": a choice's logit is the cosine of its vector and the premise's,
 *       "rows": { "pair": row } for logits, { "choice": row, "input": row, "joint": row } for embeddings,
 *       "joint_weight": 0…1 where there is "joint":
 *                       premise = normalise((1 - joint_weight) · v(input) + joint_weight · v(joint)) }
 *
 * A row is described in rows.ts. The first dimension of every tensor is the rows. The package needs a `tokenizer`
 * unless the server takes texts; `batch.rows` is 16 unless it says otherwise.
 */
import { type Checker, readOptions } from '../../packages/manifest.ts';
import {
  checkMentions,
  optionalWhole,
  type RemoteOptions,
  readRemoteOptions,
  type TextName,
} from '../remote/options.ts';
import { readServer, type ServerOptions } from '../remote/server-options.ts';
import type { Sequence } from './rows.ts';

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

/** How a row is made: parts of ids, or a template for each input tensor. */
export type RowRule =
  | { readonly kind: 'ids'; readonly sequence: Sequence }
  | { readonly kind: 'texts'; readonly templates: readonly string[] };

/** What the server returns for a row, and which rows a decision needs. */
export type Returns =
  | { readonly kind: 'logit'; readonly pair: RowRule; readonly column: number; readonly minus: number | undefined }
  | {
      readonly kind: 'embedding';
      readonly choice: RowRule;
      readonly input: RowRule;
      readonly joint: RowRule | undefined;
      readonly jointWeight: number;
    };

/** The options of a package of this dialect, as they were read. */
export interface OpenInferenceOptions extends RemoteOptions {
  readonly server: ServerOptions;
  readonly model: string;
  readonly version: string;
  readonly inputs: readonly InputTensor[];
  readonly output: OutputTensor;
  readonly returns: Returns;
}

/** Rows of a request, where a package does not say. */
const DEFAULT_ROWS = 16;

/** Reads the options. Throws InvalidOptions with every problem. */
export function readOpenInferenceOptions(raw: unknown): OpenInferenceOptions {
  return readOptions(raw, optionsOf);
}

function optionsOf(fields: Checker): OpenInferenceOptions {
  const inputs = fields.objects('inputs', 1).map(inputOf);
  const sendsIds = inputs[0]?.datatype !== 'BYTES';
  if (inputs.some(({ datatype }) => (datatype !== 'BYTES') !== sendsIds)) {
    fields.problem('must all be integers or all be BYTES', 'inputs');
  }
  if (sendsIds && inputs.filter(({ holds }) => holds === 'ids').length !== 1) {
    fields.problem('must have one that holds ids', 'inputs');
  }
  const output = outputOf(fields.object('output'));
  const options: OpenInferenceOptions = {
    ...readRemoteOptions(fields, { rows: DEFAULT_ROWS, needsTokenizer: sendsIds }),
    server: readServer(fields),
    model: fields.text('model', /./u),
    version: fields.value('version') === undefined ? '' : fields.text('version'),
    inputs,
    output,
    returns: returnsOf(fields, output, { inputs, sendsIds }),
  };
  // These may be set where the server returns something else, but are not used then.
  for (const name of ['joint_weight', 'column', 'minus']) fields.value(name);
  return options;
}

function inputOf(input: Checker): InputTensor {
  const datatype = input.text('datatype', /^(INT64|INT32|BYTES)$/) as InputTensor['datatype'];
  const shape = shapeOf(input);
  const texts = datatype === 'BYTES';
  const fits = texts ? shape.length === 1 || (shape.length === 2 && shape[1] !== 0) : shape.length === 2;
  if (!fits) input.problem(texts ? 'must be [-1] or [-1, 1]' : 'must be [-1, -1]', 'shape');
  const holds = texts ? undefined : (input.text('holds', /^(ids|mask|types)$/) as InputTensor['holds']);
  const name = input.text('name', /./u);
  input.value('holds');
  input.refuseOthers();
  return { name, datatype, shape, holds };
}

function outputOf(output: Checker): OutputTensor {
  const datatype = output.text('datatype', /^FP(16|32|64)$/) as OutputTensor['datatype'];
  const read = { name: output.text('name', /./u), datatype, shape: shapeOf(output) };
  output.refuseOthers();
  return read;
}

/** Dimensions, of which the first is the rows. */
function shapeOf(tensor: Checker): readonly number[] {
  const shape = tensor.value('shape');
  const sound =
    Array.isArray(shape) &&
    shape.length > 0 &&
    shape[0] === -1 &&
    shape.every((size) => Number.isInteger(size) && (size === -1 || size > 0));
  if (!sound) tensor.problem('must be a list of dimensions, -1 where the size varies, as in the first', 'shape');
  return sound ? (shape as readonly number[]) : [-1, -1];
}

interface Sends {
  readonly inputs: readonly InputTensor[];
  readonly sendsIds: boolean;
}

function returnsOf(fields: Checker, output: OutputTensor, sends: Sends): Returns {
  const rows = fields.object('rows');
  const width = output.shape.slice(1).reduce((product, size) => product * size, 1);
  if (fields.text('returns', /^(logit|embedding)$/) === 'embedding') {
    if (output.shape.length !== 2 || width < 1) fields.problem('must have the shape [-1, width]', 'output');
    const joint = rows.fields.includes('joint') ? rowOf(rows, 'joint', ['input', 'instruction'], sends) : undefined;
    return {
      kind: 'embedding',
      choice: rowOf(rows, 'choice', ['choice'], sends),
      input: rowOf(rows, 'input', ['input'], sends),
      joint,
      jointWeight: joint === undefined ? 0 : fields.number('joint_weight', 0, 1),
    };
  }
  if (width < 1) fields.problem('must say how many numbers a row has', 'output');
  return {
    kind: 'logit',
    pair: rowOf(rows, 'pair', ['input', 'instruction', 'choice'], sends),
    column: optionalWhole(fields, 'column', 0, 0, Math.max(0, width - 1)),
    minus: fields.fields.includes('minus') ? fields.integer('minus', 0, Math.max(0, width - 1)) : undefined,
  };
}

/** A row's rule; it may mention these texts, and must mention the last of them. */
function rowOf(rows: Checker, field: string, names: readonly TextName[], { inputs, sendsIds }: Sends): RowRule {
  const sequence = rows.value(field);
  let rule: RowRule;
  if (sendsIds) {
    const sound =
      Array.isArray(sequence) &&
      sequence.every((part) => typeof part === 'string' || (Number.isInteger(part) && part >= 0 && part < 2 ** 31));
    if (!sound) rows.problem('must be a list of token ids and templates', field);
    rule = { kind: 'ids', sequence: sound ? (sequence as Sequence) : [] };
  } else {
    const templates = rows.object(field);
    rule = { kind: 'texts', templates: inputs.map(({ name }) => templates.text(name)) };
    const unknown = templates.fields.filter((name) => !inputs.some((input) => input.name === name));
    for (const name of unknown) templates.problem('is not one of the inputs', name);
  }
  const parts = rule.kind === 'ids' ? rule.sequence : rule.templates;
  checkMentions(rows, field, parts.map(String), names);
  return rule;
}
