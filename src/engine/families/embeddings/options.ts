/**
 * The options of the dialect `embeddings`, beside those of all dialects (remote/options.ts):
 *
 *     { "server": { "address", "tls", "token_file" or "token_env", "path", "health" },     see remote/server-options.ts
 *       "model": the model's name at the server, if it wants one, "input_model", "choice_model": others for the
 *                premise and the choices, where a server has the two under two names,
 *       "dimensions": the width that is asked for, of a server that can shorten its vectors,
 *       "cuts": "refuses" or "silently": what the server does with texts that are too long,
 *       "templates": { "choice": what is sent of a choice, "input": of the input,
 *                      "joint": of instruction and input, if there is one },
 *       "joint_weight": 0…1 where there is "joint":
 *                       premise = normalise((1 - joint_weight) · v(input) + joint_weight · v(joint)) }
 *
 * With `"cuts": "silently"` the package must have a `tokenizer`, and its `limits` decide: what they allow, templates
 * included, must be what the server reads. `path` is "/v1/embeddings" and `batch.rows` 32 unless they say otherwise.
 * Vectors of choices are kept between decisions with `batch.independent`.
 */
import { type Checker, readOptions } from '../../packages/checker.ts';
import { optionalWhole, type RemoteOptions, readCuts, readRemoteOptions } from '../remote/options.ts';
import { type HttpServerOptions, readHttpServer } from '../remote/server-options.ts';
import { readTemplate } from '../remote/templates.ts';

/** What is asked of the server for one kind of text. */
export interface Encoding {
  readonly model: string | undefined;
  readonly dimensions: number | undefined;
}

/** The options of a package of this dialect, as they were read. */
export interface EmbeddingsOptions extends RemoteOptions {
  readonly server: HttpServerOptions;
  readonly ofInputs: Encoding;
  readonly ofChoices: Encoding;
  readonly choice: string;
  readonly input: string;
  readonly joint: string | undefined;
  readonly jointWeight: number;
}

const PATHS = { path: '/v1/embeddings', health: '/health' };
const DEFAULT_ROWS = 32;
const WIDEST = 65_536;

/** Reads the options. Throws InvalidOptions with every problem. */
export function readEmbeddingsOptions(raw: unknown): EmbeddingsOptions {
  return readOptions(raw, optionsOf);
}

function optionsOf(fields: Checker): EmbeddingsOptions {
  const templates = fields.object('templates');
  const joint =
    templates.value('joint') === undefined ? undefined : readTemplate(templates, 'joint', ['instruction', 'input']);
  const model = nameIn(fields, 'model');
  const dimensions =
    fields.value('dimensions') === undefined ? undefined : optionalWhole(fields, 'dimensions', 1, 1, WIDEST);
  const options: EmbeddingsOptions = {
    ...readRemoteOptions(fields, { rows: DEFAULT_ROWS, needsTokenizer: readCuts(fields) === 'silently' }),
    server: readHttpServer(fields, PATHS),
    ofInputs: { model: nameIn(fields, 'input_model') ?? model, dimensions },
    ofChoices: { model: nameIn(fields, 'choice_model') ?? model, dimensions },
    choice: readTemplate(templates, 'choice', ['choice']),
    input: readTemplate(templates, 'input', ['instruction', 'input']),
    joint,
    jointWeight: joint === undefined ? 0 : fields.number('joint_weight', 0, 1),
  };
  templates.refuseOthers();
  return options;
}

function nameIn(fields: Checker, field: string): string | undefined {
  return fields.value(field) === undefined ? undefined : fields.text(field);
}
