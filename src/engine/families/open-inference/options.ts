/**
 * The options of an `open-inference` package:
 *
 *     { "server": { "address": "<host>:<port>", "tls": { "ca", "certificate", "key": PEM files, "server_name" } },
 *       "model": the model's name at the server, "version": there, if one is meant,
 *       "inputs": [{ "name", "datatype": "INT64" | "INT32" | "BYTES", "shape": [-1, …], "holds": "ids" | "mask" | "types", for integers }],
 *       "output": { "name", "datatype": "FP32" | "FP64" | "FP16", "shape": [-1, …] },
 *       "returns": "logit", with "column" and perhaps "minus", places in a row of the output: the logit is the one less the other,
 *                  or "embedding": a choice's logit is the cosine of its vector and the premise's,
 *       "rows": { "pair": row } for logits, { "choice": row, "input": row, "joint": row } for embeddings,
 *       "joint_weight": 0…1 where there is "joint": premise = normalise((1 - joint_weight) · v(input) + joint_weight · v(joint)),
 *       "tokenizer": a file of the package, or, if the server takes texts, "bytes_per_token": by which tokens are counted,
 *       "temperature": see temperature.ts,
 *       "batch": { "rows": n, "independent": whether a row's result does not depend on the rows beside it,
 *                  "choices": the most that a decision may send to the server },
 *       "shortlist": what picks as many of more choices, see remote/shortlist-options.ts,
 *       "in_flight": { "requests": n, "bytes": n }, "message_bytes": n, "timeout_ms": of one request }
 *
 * The parts of `tls` are optional; without `tls` the connection is in clear. Its files lie in the package's folder
 * unless their paths are absolute, and are not listed in `files`. What a row is, stands in rows.ts. The first dimension
 * of every tensor is the rows. All lines from "batch" on are optional.
 */

import type { ModelLimits } from '../../engine.ts';
import { type Checker, createChecker, InvalidOptions } from '../../packages/checker.ts';
import { ADDRESS_PATTERN, DEFAULT_REQUESTS } from '../../packages/servers.ts';
import type { CallBounds } from '../remote/calls.ts';
import { readShortlist, type ShortlistOptions } from '../remote/shortlist-options.ts';
import { readTemperature, type Temperature } from '../temperature.ts';
import { mentioned, type Sequence, type TextName } from './rows.ts';

/** An input tensor. `holds` is what integers are; undefined for texts. */
export interface InputTensor {
  readonly name: string;
  readonly datatype: 'INT64' | 'INT32' | 'BYTES';
  readonly shape: readonly number[];
  readonly holds: 'ids' | 'mask' | 'types' | undefined;
}

/** The output tensor. */
export interface OutputTensor {
  readonly name: string;
  readonly datatype: 'FP32' | 'FP64' | 'FP16';
  readonly shape: readonly number[];
}

/** How a row is made: parts of ids, or a template for each input tensor. */
export type RowRule =
  | { readonly kind: 'ids'; readonly sequence: Sequence }
  | { readonly kind: 'texts'; readonly templates: readonly string[] };

/** What the server returns for a row, and of which rows a decision is made. */
export type Returns =
  | { readonly kind: 'logit'; readonly pair: RowRule; readonly column: number; readonly minus: number | undefined }
  | {
      readonly kind: 'embedding';
      readonly choice: RowRule;
      readonly input: RowRule;
      readonly joint: RowRule | undefined;
      readonly jointWeight: number;
    };

/** How the server is reached. Paths as the manifest has them. */
export interface ServerOptions {
  readonly address: string;
  readonly tls: TlsOptions | undefined;
}

/** PEM files; without a CA those of the system hold. */
export interface TlsOptions {
  readonly ca: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  readonly serverName: string | undefined;
}

/** Bounds of one request. */
export interface RequestBounds {
  readonly rows: number;
  /** Of its rows together. */
  readonly messageBytes: number;
}

/** All options. */
export interface OpenInferenceOptions {
  readonly server: ServerOptions;
  readonly model: string;
  readonly version: string;
  readonly inputs: readonly InputTensor[];
  readonly output: OutputTensor;
  readonly returns: Returns;
  readonly tokenizer: string | undefined;
  readonly bytesPerToken: number;
  readonly temperature: Temperature;
  readonly independent: boolean;
  readonly shortlist: ShortlistOptions | undefined;
  readonly bounds: CallBounds & RequestBounds;
}

const MIB = 2 ** 20;

/** Reads the options of a package with these limits. Throws InvalidOptions with every problem. */
export function readOpenInferenceOptions(raw: unknown, limits: ModelLimits): OpenInferenceOptions {
  const problems: string[] = [];
  const fields = createChecker(raw, 'options', problems);
  const has = (field: string): boolean => fields.fields.includes(field);
  const inputs = fields.objects('inputs', 1).map(inputOf);
  const sendsIds = inputs[0]?.datatype !== 'BYTES';
  if (inputs.some(({ datatype }) => (datatype !== 'BYTES') !== sendsIds)) {
    fields.problem('must all be integers or all be BYTES', 'inputs');
  }
  if (sendsIds && inputs.filter(({ holds }) => holds === 'ids').length !== 1) {
    fields.problem('must have one that holds ids', 'inputs');
  }
  const output = outputOf(fields.object('output'));
  const batch = optional(fields, 'batch');
  const inFlight = optional(fields, 'in_flight');
  const options: OpenInferenceOptions = {
    server: serverOf(fields.object('server')),
    model: fields.text('model', /./u),
    version: has('version') ? fields.text('version') : '',
    inputs,
    output,
    returns: returnsOf(fields, output, { inputs, sendsIds }),
    tokenizer: sendsIds || has('tokenizer') ? fields.text('tokenizer', /./u) : undefined,
    bytesPerToken: sendsIds || has('tokenizer') ? 1 : fields.number('bytes_per_token', 1, 16),
    temperature: readTemperature(fields),
    independent: batch.flag('independent', false),
    shortlist: readShortlist(fields, 'batch.choices', optionalWhole(batch, 'choices', 2, 300), limits),
    bounds: {
      rows: whole(batch, 'rows', 16, 1, 300),
      requests: whole(inFlight, 'requests', DEFAULT_REQUESTS, 1, 256),
      bytes: whole(inFlight, 'bytes', 64 * MIB, MIB, 1024 * MIB),
      messageBytes: whole(fields, 'message_bytes', 4 * MIB, 65_536, 256 * MIB),
      timeoutMs: whole(fields, 'timeout_ms', 5000, 10, 30_000),
    },
  };
  // Of no use where the package has the server read texts, or return something else.
  for (const name of ['tokenizer', 'bytes_per_token', 'joint_weight', 'column', 'minus', 'version']) fields.value(name);
  for (const each of [batch, inFlight, fields]) each.refuseOthers();
  if (problems.length > 0) throw new InvalidOptions(problems);
  return options;
}

function whole(fields: Checker, field: string, fallback: number, least: number, most: number): number {
  return fields.fields.includes(field) ? fields.integer(field, least, most) : fallback;
}

function optionalWhole(fields: Checker, field: string, least: number, most: number): number | undefined {
  return fields.fields.includes(field) ? fields.integer(field, least, most) : undefined;
}

/** An object that may be left out. */
function optional(fields: Checker, field: string): Checker {
  return fields.fields.includes(field) ? fields.object(field) : createChecker({}, field, []);
}

function serverOf(server: Checker): ServerOptions {
  const address = server.text('address', ADDRESS_PATTERN);
  if (!server.fields.includes('tls')) {
    server.refuseOthers();
    return { address, tls: undefined };
  }
  const tls = server.object('tls');
  const text = (field: string): string | undefined => {
    if (tls.value(field) === undefined) return undefined;
    return tls.text(field, /./u);
  };
  const [certificate, key] = [text('certificate'), text('key')];
  if ((certificate === undefined) !== (key === undefined)) tls.problem('must have certificate and key together');
  const read = { address, tls: { ca: text('ca'), certificate, key, serverName: text('server_name') } };
  for (const each of [tls, server]) each.refuseOthers();
  return read;
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

/** Dimensions, the first of which is the rows. */
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
    column: whole(fields, 'column', 0, 0, Math.max(0, width - 1)),
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
  const found = new Set(
    (rule.kind === 'ids' ? rule.sequence : rule.templates).flatMap((part) => mentioned(String(part))),
  );
  const needed = names.at(-1) as TextName;
  if (!found.has(needed)) rows.problem(`must mention {${needed}}`, field);
  for (const name of found) if (!names.includes(name)) rows.problem(`must not mention {${name}}`, field);
  return rule;
}
