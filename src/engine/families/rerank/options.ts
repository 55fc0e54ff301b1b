/**
 * The options of the dialect `rerank`, beside those of all dialects (remote/options.ts):
 *
 *     { "server": { "address", "tls", "token_file" or "token_env", "path", "health" },     see remote/server-options.ts
 *       "shape": "documents": { query, documents } → { results: [{ index, relevance_score }] }, as Cohere, Jina, vLLM,
 *                Infinity, llama.cpp and others have it, or a bare list of these; "path" is "/v1/rerank" unless it
 *                says otherwise,
 *                or "texts": { query, texts } → [{ index, score }], as text-embeddings-inference has it; "path" is
 *                "/rerank",
 *       "model": the model's name at the server, if it wants one,
 *       "scores": "logit", or "probability": of each pair, of which the logit is taken here,
 *       "raw": for logits, the field that asks for them: "raw_scores" (TEI, Infinity), "use_activation" (vLLM), or
 *              "none" where the server returns them unasked (llama.cpp),
 *       "truncate": "refuse", which tells the server to refuse texts that are too long (TEI),
 *       "cuts": "refuses" or "silently": what the server does with such texts, told or not,
 *       "templates": { "query": what is sent of input and instruction, "document": what is sent of a choice } }
 *
 * With `"cuts": "silently"` the package must have a `tokenizer`, and its `limits` decide: what they allow, templates
 * included, must be what the server reads. `batch.rows` is 32 unless it says otherwise.
 */
import { type Checker, readOptions } from '../../packages/checker.ts';
import { type RemoteOptions, readCuts, readRemoteOptions } from '../remote/options.ts';
import { type HttpPaths, type HttpServerOptions, readHttpServer } from '../remote/server-options.ts';
import { readTemplate } from '../remote/templates.ts';

/** The two forms of request and answer. */
export type RerankShape = 'documents' | 'texts';

/** What the server's scores are; `ask` names the field that makes it return logits. */
export type RerankScores =
  | { readonly kind: 'logit'; readonly ask: 'raw_scores' | 'use_activation' | undefined }
  | { readonly kind: 'probability' };

/** The options of a package of this dialect, as they were read. */
export interface RerankOptions extends RemoteOptions {
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

/** Reads the options. Throws InvalidOptions with every problem. */
export function readRerankOptions(raw: unknown): RerankOptions {
  return readOptions(raw, optionsOf);
}

function optionsOf(fields: Checker): RerankOptions {
  const shape: RerankShape = fields.text('shape', /^(documents|texts)$/) === 'texts' ? 'texts' : 'documents';
  const templates = fields.object('templates');
  const probability = fields.text('scores', /^(logit|probability)$/) === 'probability';
  const ask = probability ? undefined : fields.text('raw', /^(raw_scores|use_activation|none)$/);
  const options: RerankOptions = {
    ...readRemoteOptions(fields, { rows: DEFAULT_ROWS, needsTokenizer: readCuts(fields) === 'silently' }),
    server: readHttpServer(fields, PATHS[shape]),
    shape,
    model: fields.value('model') === undefined ? undefined : fields.text('model'),
    scores: probability
      ? { kind: 'probability' }
      : { kind: 'logit', ask: ask === 'raw_scores' || ask === 'use_activation' ? ask : undefined },
    refuses: fields.value('truncate') !== undefined && fields.text('truncate', /^refuse$/) !== '',
    query: readTemplate(templates, 'query', ['instruction', 'input']),
    document: readTemplate(templates, 'document', ['input', 'instruction', 'choice']),
  };
  templates.refuseOthers();
  return options;
}
