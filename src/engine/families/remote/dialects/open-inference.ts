/**
 * The dialect `open-inference`: a server that speaks the Open Inference Protocol v2 over gRPC makes the numbers, from
 * rows that are made here. Rows of ids share a request only with rows of their length: nothing is padded. One file: the
 * options are the grammar of the rows. They are, beside those of all dialects (remote/options.ts):
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
 * For a server that takes ids, a row is a list of parts: token ids as they are, and templates, which are tokenised part
 * by part, so that no text can reach into another; the token types are 0 up to the first part that reads the choice,
 * and 1 from there. For a server that takes texts, a row is one template for each input tensor. The first dimension of
 * every tensor is the rows. The package needs a `tokenizer` unless the server takes texts; `batch.rows` is 16 unless it
 * says otherwise.
 */
import { type Checker, readOptions } from '../../../packages/manifest.ts';
import type { TextTokenizer } from '../../../text/tokenizer.ts';
import type { Family, FamilyParts } from '../../family.ts';
import { batchesWithin, type InferenceJob, inBatches, paced, type RequestBounds } from '../calls.ts';
import { type InferenceConnection, openInferenceConnection } from '../grpc/client.ts';
import {
  type InputTensor,
  inferRequest,
  type OutputTensor,
  outputOf,
  type Row,
  rowBytes,
  type ServedModel,
} from '../grpc/tensors.ts';
import {
  checkMentions,
  fill,
  mentioned,
  type RemoteOptions,
  type RowTexts,
  readRemoteOptions,
  type TextName,
  textsOf,
} from '../options.ts';
import { createRemoteFamily } from '../remote-family.ts';
import type { RemoteServer } from '../remote-server.ts';
import { createVectorScorer, premiseParts, type ReadChoice, type RemoteEncoder, type Scorer } from '../scorer.ts';
import { readServer, type ServerOptions } from '../server-options.ts';

/** Loads a package of this dialect. Throws InvalidOptions, or what loading its files throws. */
export async function loadOpenInference(parts: FamilyParts): Promise<Family> {
  const options = readOptions(parts.options, readOpenInferenceOptions);
  const { returns } = options;
  return await createRemoteFamily(parts, options, {
    open: () => openInferenceConnection(options, parts.folder),
    keepsChoices: returns.kind === 'embedding',
    scorer({ server, tokenizer, keeps }) {
      const infer = createInferRows(server, options);
      const rowOf: RowMaker = (rule, texts, known = new Map()) =>
        rule.kind === 'ids'
          ? idsRow(rule.sequence, texts, tokenizer, known)
          : rule.templates.map((template) => fill(template, texts));
      return returns.kind === 'logit'
        ? createLogitScorer(returns, rowOf, infer)
        : createVectorScorer(createRowEncoder(returns, rowOf, infer), returns.jointWeight, keeps);
    },
  });
}

/** Makes a row of texts. `known` keeps the tokens of parts that do not mention the choice, for rows of one premise. */
type RowMaker = (rule: RowRule, texts: RowTexts, known?: Map<string, readonly number[]>) => Row;

/** The server's numbers for each row, in the order of the rows. Rejects with CallFailed. */
type InferRows = (rows: readonly Row[], call: InferenceJob) => Promise<readonly Float64Array[]>;

/** One row for each choice. Rejects with JobStopped when the job is no longer wanted. */
async function rowsOfChoices(
  rowOf: RowMaker,
  rule: RowRule,
  texts: RowTexts,
  choices: readonly ReadChoice[],
  call: InferenceJob,
): Promise<readonly Row[]> {
  const known = new Map<string, readonly number[]>();
  return await paced(choices, call, (choice) => rowOf(rule, { ...texts, choice }, known));
}

/** For a server that reads a premise and a choice together, one row a choice, and returns a logit for the pair. */
function createLogitScorer(
  { pair, column, minus }: Extract<Returns, { kind: 'logit' }>,
  rowOf: RowMaker,
  infer: InferRows,
): Scorer {
  return {
    choiceReadsPremise: true,
    async logits(premise, choices, call) {
      const rows = await infer(await rowsOfChoices(rowOf, pair, textsOf(premise), choices, call), call);
      const at = (row: Float64Array, place: number): number => row[place] as number;
      const logits = Float64Array.from(rows, (row) => at(row, column) - (minus === undefined ? 0 : at(row, minus)));
      return { logits, read: choices.length };
    },
  };
}

/** For a server whose model makes one vector of each row. */
function createRowEncoder(
  { choice, input, joint, jointWeight }: Extract<Returns, { kind: 'embedding' }>,
  rowOf: RowMaker,
  infer: InferRows,
): RemoteEncoder {
  const rules = premiseParts(input, joint, jointWeight);
  return {
    choices: async (choices, call) => await infer(await rowsOfChoices(rowOf, choice, {}, choices, call), call),
    premise: async (premise, call) =>
      await infer(await paced(rules, call, (rule) => rowOf(rule, textsOf(premise))), call),
  };
}

/** Sends rows to one server, in the form that the options say. */
function createInferRows(
  server: Pick<RemoteServer<InferenceConnection>, 'call'>,
  options: OpenInferenceOptions,
): InferRows {
  const { inputs, output, bounds } = options;
  let sequence = 0;

  const inferBatch = (rows: readonly Row[], call: InferenceJob) => {
    const bytes = rows.reduce((sum, row) => sum + rowBytes(row, inputs), 0);
    return server.call({ rows: rows.length, bytes }, call, async (connection, terms) => {
      const id = String(++sequence);
      return outputOf(await connection.infer(inferRequest(rows, options, id), terms), output, {
        rows: rows.length,
        id,
      });
    });
  };

  return (rows, call) =>
    inBatches(batchesOf(rows, inputs, bounds), call, async (places, part) => {
      const batch = places.map((place) => rows[place] as Row);
      const { values, width } = await inferBatch(batch, part);
      return batch.map((_, i) => values.subarray(i * width, (i + 1) * width));
    });
}

/** The places of the rows in each request. The same rows always make the same requests. */
export function batchesOf(
  rows: readonly Row[],
  inputs: readonly InputTensor[],
  bounds: RequestBounds,
): readonly (readonly number[])[] {
  const byLength = Map.groupBy(rows.keys(), (place) => {
    const row = rows[place] as Row;
    return 'ids' in row ? row.ids.length : 0;
  });
  return [...byLength.values()].flatMap((places) =>
    batchesWithin(places, (place) => rowBytes(rows[place] as Row, inputs), bounds),
  );
}

/** Parts of an ids row. */
type Sequence = readonly (number | string)[];

/** Makes a row of ids; `known` as in `RowMaker`. */
export function idsRow(
  sequence: Sequence,
  texts: RowTexts,
  tokenizer: Pick<TextTokenizer, 'ids'>,
  known: Map<string, readonly number[]>,
): Row {
  const ids: number[] = [];
  let typesFrom: number | undefined;
  for (const part of sequence) {
    if (typeof part === 'number') {
      ids.push(part);
      continue;
    }
    const readsChoice = mentioned(part).includes('choice');
    if (readsChoice) typesFrom ??= ids.length;
    const [, only] = /^\{(input|instruction|choice)\}$/.exec(part) ?? [];
    const tokens = texts[only as TextName]?.ids ?? known.get(part) ?? tokenizer.ids(fill(part, texts));
    if (!readsChoice) known.set(part, tokens);
    for (const id of tokens) ids.push(id);
  }
  return { ids, typesFrom: typesFrom ?? ids.length };
}

/** How a row is made: parts of ids, or a template for each input tensor. */
type RowRule =
  | { readonly kind: 'ids'; readonly sequence: Sequence }
  | { readonly kind: 'texts'; readonly templates: readonly string[] };

/** What the server returns for a row, and which rows a decision needs. */
type Returns =
  | { readonly kind: 'logit'; readonly pair: RowRule; readonly column: number; readonly minus: number | undefined }
  | {
      readonly kind: 'embedding';
      readonly choice: RowRule;
      readonly input: RowRule;
      readonly joint: RowRule | undefined;
      readonly jointWeight: number;
    };

/** The options of a package of this dialect, as they were read. */
interface OpenInferenceOptions extends RemoteOptions, ServedModel {
  readonly server: ServerOptions;
  readonly returns: Returns;
}

/** Rows of a request, where a package does not say. */
const DEFAULT_ROWS = 16;

/** Reads the options; what is wrong becomes a problem. */
export function readOpenInferenceOptions(fields: Checker): OpenInferenceOptions {
  const inputs = fields.objects('inputs', 1).map(inputOf);
  const sendsIds = inputs[0]?.datatype !== 'BYTES';
  if (inputs.some(({ datatype }) => (datatype !== 'BYTES') !== sendsIds)) {
    fields.problem('must all be integers or all be BYTES', 'inputs');
  }
  if (sendsIds && inputs.filter(({ holds }) => holds === 'ids').length !== 1) {
    fields.problem('must have one that holds ids', 'inputs');
  }
  const output = outputTensorOf(fields.object('output'));
  const options: OpenInferenceOptions = {
    ...readRemoteOptions(fields, { rows: DEFAULT_ROWS, needsTokenizer: sendsIds }),
    server: readServer(fields),
    model: fields.text('model', /./u),
    version: fields.text('version', /./su, ''),
    inputs,
    output,
    returns: returnsOf(fields, output, { inputs, sendsIds }),
  };
  // These may be set where the server returns something else, but are not used then.
  for (const name of ['joint_weight', 'column', 'minus']) fields.value(name);
  return options;
}

function inputOf(input: Checker): InputTensor {
  const datatype = input.oneOf('datatype', ['INT64', 'INT32', 'BYTES']);
  const shape = shapeOf(input);
  const texts = datatype === 'BYTES';
  const fits = texts ? shape.length === 1 || (shape.length === 2 && shape[1] !== 0) : shape.length === 2;
  if (!fits) input.problem(texts ? 'must be [-1] or [-1, 1]' : 'must be [-1, -1]', 'shape');
  const holds = texts ? undefined : input.oneOf('holds', ['ids', 'mask', 'types']);
  const name = input.text('name', /./u);
  input.value('holds');
  input.refuseOthers();
  return { name, datatype, shape, holds };
}

function outputTensorOf(output: Checker): OutputTensor {
  const datatype = output.oneOf('datatype', ['FP32', 'FP64', 'FP16']);
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
  if (fields.oneOf('returns', ['logit', 'embedding']) === 'embedding') {
    if (output.shape.length !== 2 || width < 1) fields.problem('must have the shape [-1, width]', 'output');
    const joint = rows.has('joint') ? rowOf(rows, 'joint', ['input', 'instruction'], sends) : undefined;
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
    column: fields.integer('column', 0, Math.max(0, width - 1), 0),
    minus: fields.has('minus') ? fields.integer('minus', 0, Math.max(0, width - 1)) : undefined,
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
