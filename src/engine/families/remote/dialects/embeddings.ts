/**
 * The dialect `embeddings`: an HTTP server encodes texts one by one, as OpenAI's `/v1/embeddings` does. A choice's
 * logit is the cosine of its vector and the premise's, as in a bi-encoder.
 */
import { type Checker, readOptions } from '../../../packages/manifest.ts';
import type { Family, FamilyParts } from '../../family.ts';
import { malformed } from '../call-failed.ts';
import { batchesWithin, type InferenceJob, inBatches, paced } from '../calls.ts';
import { createHttpFamily, type Post } from '../http/http-connection.ts';
import { finiteNumber, inOrder, listIn, objectOf } from '../http/parse-json.ts';
import { fill, type RemoteOptions, readRemoteOptions, readTemplate, textsOf } from '../options.ts';
import { createVectorScorer, premiseParts, type RemoteEncoder } from '../scorer.ts';
import { type HttpServerOptions, readHttpServer } from '../server-options.ts';

/** Loads a package of this dialect. Throws InvalidOptions, or what loading its files throws. */
export async function loadEmbeddings(parts: FamilyParts): Promise<Family> {
  const options = readOptions(parts.options, readEmbeddingsOptions);
  const scorer = (post: Post, keeps: boolean) =>
    createVectorScorer(createTextEncoder(post, options), options.jointWeight, keeps);
  return await createHttpFamily(parts, options, scorer, true);
}

/** An encoder that makes the texts by the package's templates. */
function createTextEncoder(post: Post, options: EmbeddingsOptions): RemoteEncoder {
  const { bounds } = options;
  const templates = premiseParts(options.input, options.joint, options.jointWeight);

  /** `texts` are strings written as JSON. */
  const encode = (texts: readonly string[], encoding: Encoding, call: InferenceJob) => {
    const bytesOf = (place: number): number => Buffer.byteLength(texts[place] as string);
    return inBatches(batchesWithin(texts.keys(), bytesOf, bounds), call, (places, part) => {
      const batch = places.map((place) => texts[place] as string);
      const read = (answer: unknown) => vectorsIn(answer, batch.length, encoding);
      return post(embeddingsBody(batch, encoding), batch.length, part, read);
    });
  };

  return {
    async choices(choices, call) {
      const texts = await paced(choices, call, (choice) => JSON.stringify(fill(options.choice, { choice })));
      return await encode(texts, options.ofChoices, call);
    },
    premise: (premise, call) =>
      encode(
        templates.map((template) => JSON.stringify(fill(template, textsOf(premise)))),
        options.ofInputs,
        call,
      ),
  };
}

/** The body of a request for vectors. `texts` are strings written as JSON. */
function embeddingsBody(texts: readonly string[], { model, dimensions }: Encoding): string {
  const fields = [
    ...(model === undefined ? [] : [`"model":${JSON.stringify(model)}`]),
    `"input":[${texts.join(',')}]`,
    '"encoding_format":"float"',
    ...(dimensions === undefined ? [] : [`"dimensions":${dimensions}`]),
  ];
  return `{${fields.join(',')}}`;
}

/**
 * The vector of each of `count` texts, by the index that the server gives it. Throws CallFailed `malformed` unless each
 * has one of finite numbers, of the width that was asked for.
 */
function vectorsIn(answer: unknown, count: number, { dimensions }: Encoding): readonly Float64Array[] {
  return inOrder(listIn(objectOf(answer).data, 'data'), count, ({ embedding }) => {
    const numbers = listIn(embedding, 'numbers of an embedding');
    if (numbers.length === 0 || numbers.length !== (dimensions ?? numbers.length)) {
      throw malformed(`an embedding has ${numbers.length} numbers`);
    }
    return Float64Array.from(numbers, (value) => finiteNumber(value, 'number of an embedding'));
  });
}

// The options of the dialect `embeddings`, beside those of all dialects (remote/options.ts):
//
//     { "server": { "address", "tls", "token_file" or "token_env", "path", "health" },     see remote/server-options.ts
//       "model": the model's name at the server, if it wants one, "input_model", "choice_model": others for the
//                premise and the choices, where a server has the two under two names,
//       "dimensions": the width that is asked for, of a server that can shorten its vectors,
//       "cuts": "refuses" or "silently": what the server does with texts that are too long,
//       "templates": { "choice": what is sent of a choice, "input": of the input,
//                      "joint": of instruction and input, if there is one },
//       "joint_weight": 0…1 where there is "joint":
//                       premise = normalise((1 - joint_weight) · v(input) + joint_weight · v(joint)) }
//
// With `"cuts": "silently"` the package must have a `tokenizer`, and its `limits` decide: what they allow, templates
// included, must be what the server reads. `path` is "/v1/embeddings" and `batch.rows` 32 unless they say otherwise.
// Vectors of choices are kept between decisions with `batch.independent`.

/** What is asked of the server for one kind of text. */
interface Encoding {
  readonly model: string | undefined;
  readonly dimensions: number | undefined;
}

/** The options of a package of this dialect, as they were read. */
interface EmbeddingsOptions extends RemoteOptions {
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

/** Reads the options; what is wrong becomes a problem. */
export function readEmbeddingsOptions(fields: Checker): EmbeddingsOptions {
  const templates = fields.object('templates');
  const joint = templates.has('joint') ? readTemplate(templates, 'joint', ['instruction', 'input']) : undefined;
  const model = fields.optionalText('model');
  const dimensions = fields.has('dimensions') ? fields.integer('dimensions', 1, WIDEST) : undefined;
  const options: EmbeddingsOptions = {
    ...readRemoteOptions(fields, { rows: DEFAULT_ROWS }),
    server: readHttpServer(fields, PATHS),
    ofInputs: { model: fields.optionalText('input_model') ?? model, dimensions },
    ofChoices: { model: fields.optionalText('choice_model') ?? model, dimensions },
    choice: readTemplate(templates, 'choice', ['choice']),
    input: readTemplate(templates, 'input', ['instruction', 'input']),
    joint,
    jointWeight: joint === undefined ? 0 : fields.number('joint_weight', 0, 1),
  };
  templates.refuseOthers();
  return options;
}
