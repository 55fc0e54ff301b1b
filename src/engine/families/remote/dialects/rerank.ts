/**
 * The dialect `rerank`: an HTTP server scores choices, its *documents* or *texts*, for a query. A choice's logit is
 * that of its pair with the query, as in a cross-encoder.
 */
import { type Checker, readOptions } from '../../../packages/manifest.ts';
import type { Family, FamilyParts } from '../../family.ts';
import { malformed } from '../call-failed.ts';
import { batchesWithin, inBatches, paced } from '../calls.ts';
import { createHttpFamily, type Post } from '../http/http-connection.ts';
import { finiteNumber, inOrder, listIn, objectOf } from '../http/parse-json.ts';
import { fill, type RemoteOptions, readRemoteOptions, readTemplate, textsOf } from '../options.ts';
import type { Scorer } from '../scorer.ts';
import { type HttpPaths, type HttpServerOptions, readHttpServer } from '../server-options.ts';

/** Loads a package of this dialect. Throws InvalidOptions, or what loading its files throws. */
export async function loadRerank(parts: FamilyParts): Promise<Family> {
  const options = readOptions(parts.options, readRerankOptions);
  return await createHttpFamily(parts, options, (post) => createRerankScorer(post, options));
}

/** The body of a request for the scores of all documents. `query` and `documents` are strings written as JSON. */
function rerankBody(
  query: string,
  documents: readonly string[],
  { shape, model, scores, refuses }: Pick<RerankOptions, 'shape' | 'model' | 'scores' | 'refuses'>,
): string {
  const ask = scores.kind === 'logit' ? scores.ask : undefined;
  const fields = [
    ...(model === undefined ? [] : [`"model":${JSON.stringify(model)}`]),
    `"query":${query}`,
    `"${shape}":[${documents.join(',')}]`,
    // Some servers return only the best few if nothing is said.
    ...(shape === 'documents' ? [`"top_n":${documents.length}`] : []),
    ...(ask === 'raw_scores' ? ['"raw_scores":true'] : []),
    ...(ask === 'use_activation' ? ['"use_activation":false'] : []),
    ...(refuses ? ['"truncate":false'] : []),
  ];
  return `{${fields.join(',')}}`;
}

/**
 * The score of each of `count` documents, by the index that the server gives it, in the order of the documents. Throws
 * CallFailed `malformed` unless each has one that is a finite number.
 */
function scoresIn(answer: unknown, shape: RerankShape, count: number): readonly number[] {
  const list = Array.isArray(answer) || shape === 'texts' ? answer : objectOf(answer).results;
  return inOrder(listIn(list, 'results'), count, (result) =>
    // A bare list may call it `score` in either shape.
    finiteNumber(result.relevance_score ?? result.score, shape === 'texts' ? 'score' : 'relevance_score'),
  );
}

// The options of the dialect `rerank`, beside those of all dialects (remote/options.ts):
//
//     { "server": { "address", "tls", "token_file" or "token_env", "path", "health" },     see remote/server-options.ts
//       "shape": "documents": { query, documents } → { results: [{ index, relevance_score }] }, as Cohere, Jina, vLLM,
//                Infinity, llama.cpp and others have it, or a bare list of these; "path" is "/v1/rerank" unless it
//                says otherwise,
//                or "texts": { query, texts } → [{ index, score }], as text-embeddings-inference has it; "path" is
//                "/rerank",
//       "model": the model's name at the server, if it wants one,
//       "scores": "logit", or "probability": of each pair, of which the logit is taken here,
//       "raw": for logits, the field that asks for them: "raw_scores" (TEI, Infinity), "use_activation" (vLLM), or
//              "none" where the server returns them unasked (llama.cpp),
//       "truncate": "refuse", which tells the server to refuse texts that are too long (TEI),
//       "cuts": "refuses" or "silently": what the server does with such texts, told or not,
//       "templates": { "query": what is sent of input and instruction, "document": what is sent of a choice } }
//
// With `"cuts": "silently"` the package must have a `tokenizer`, and its `limits` decide: what they allow, templates
// included, must be what the server reads. `batch.rows` is 32 unless it says otherwise.

/** The two forms of request and answer. */
type RerankShape = 'documents' | 'texts';

/** What the server's scores are; `ask` names the field that makes it return logits. */
type RerankScores =
  | { readonly kind: 'logit'; readonly ask: 'raw_scores' | 'use_activation' | 'none' }
  | { readonly kind: 'probability' };

/** The options of a package of this dialect, as they were read. */
interface RerankOptions extends RemoteOptions {
  readonly server: HttpServerOptions;
  readonly shape: RerankShape;
  readonly model: string | undefined;
  readonly scores: RerankScores;
  /** Whether the server is told to refuse texts that are too long. */
  readonly refuses: boolean;
  readonly query: string;
  readonly document: string;
}

const PATHS: Readonly<Record<RerankShape, HttpPaths>> = {
  documents: { path: '/v1/rerank', health: '/health' },
  texts: { path: '/rerank', health: '/health' },
};

/** Rows of a request, where a package does not say: what text-embeddings-inference takes. */
const DEFAULT_ROWS = 32;

/** Reads the options; what is wrong becomes a problem. */
export function readRerankOptions(fields: Checker): RerankOptions {
  const shape = fields.oneOf('shape', ['documents', 'texts']);
  const templates = fields.object('templates');
  const kind = fields.oneOf('scores', ['logit', 'probability']);
  const options: RerankOptions = {
    ...readRemoteOptions(fields, { rows: DEFAULT_ROWS }),
    server: readHttpServer(fields, PATHS[shape]),
    shape,
    model: fields.optionalText('model'),
    scores: kind === 'logit' ? { kind, ask: fields.oneOf('raw', ['none', 'raw_scores', 'use_activation']) } : { kind },
    refuses: fields.has('truncate') && fields.oneOf('truncate', ['refuse']) === 'refuse',
    query: readTemplate(templates, 'query', ['instruction', 'input']),
    document: readTemplate(templates, 'document', ['input', 'instruction', 'choice']),
  };
  templates.refuseOthers();
  return options;
}

/** A scorer that sends one pair of query and document for each choice. */
function createRerankScorer(
  post: Post,
  options: Pick<RerankOptions, 'shape' | 'model' | 'scores' | 'refuses' | 'query' | 'document' | 'bounds'>,
): Scorer {
  const { shape, scores: kind, bounds } = options;
  return {
    choiceReadsPremise: true,
    async logits(premise, choices, call) {
      const query = JSON.stringify(fill(options.query, textsOf(premise)));
      const documents = await paced(choices, call, (choice) =>
        JSON.stringify(fill(options.document, textsOf(premise, choice))),
      );
      const bytesOf = (place: number): number => Buffer.byteLength(documents[place] as string);
      const room = Math.max(1, bounds.messageBytes - Buffer.byteLength(query));
      const batches = batchesWithin(documents.keys(), bytesOf, { rows: bounds.rows, messageBytes: room });
      const found = await inBatches(batches, call, (places, part) => {
        const batch = places.map((place) => documents[place] as string);
        const body = rerankBody(query, batch, options);
        return post(body, batch.length, part, (answer) => scoresIn(answer, shape, batch.length));
      });
      const scores = Float64Array.from(found);
      return { logits: logitsOf(scores, kind), read: choices.length, doubt: doubtOf(scores, kind) };
    },
  };
}

/**
 * Probabilities are kept this far from 0 and 1, where logits would be infinite: half of the step below 1 in single
 * precision.
 */
const LEAST = 2 ** -25;

/** Logits, one for each score. Throws CallFailed `malformed` for a score that is no probability. */
function logitsOf(scores: Float64Array, { kind }: RerankScores): Float64Array {
  if (kind === 'logit') return scores;
  return scores.map((p) => {
    if (p < 0 || p > 1) throw malformed('a score is no probability');
    const kept = Math.min(Math.max(p, LEAST), 1 - LEAST);
    return Math.log(kept / (1 - kept));
  });
}

/**
 * Why scores cannot tell texts apart: many of them lie exactly where scores were cut off or rounded. Undefined if they
 * can.
 */
function doubtOf(scores: Float64Array, { kind }: RerankScores): string | undefined {
  const least = Math.min(...scores);
  const greatest = Math.max(...scores);
  if (kind === 'probability') {
    const ends = scores.filter((p) => p === 0 || p === 1).length;
    return ends === 0
      ? undefined
      : `the server's scores are saturated: ${ends} of the canary's ${scores.length} are exactly 0 or 1; have it return logits`;
  }
  // Two equal scores may be chance if a model computes with few digits.
  const cut = [least, greatest].find((end) => 2 * scores.filter((score) => score === end).length > scores.length);
  return cut === undefined
    ? undefined
    : `the server's scores are cut off: most of the canary's are exactly ${cut}; have it return raw logits`;
}
