/**
 * Servers of rerankers, in the shapes of the real ones: what they ask for, how they order and name results, what they
 * do with a pair that is too long.
 */
import type { Reply } from './faults.ts';
import { TOO_LONG, type TooLong } from './refusals.ts';
import type { ServedDialect } from './server.ts';
import { lengthOf, type Pair, type PairScorer } from './text-models.ts';

/** The servers that are imitated. */
export const RERANK_SERVERS = ['vllm', 'infinity', 'llama.cpp', 'sglang', 'tei', 'cohere'] as const;
export type RerankServer = (typeof RERANK_SERVERS)[number];

/** How one of them is. */
interface Manner {
  readonly path: string;
  readonly texts: 'documents' | 'texts';
  /** Whether a body asks for logits. */
  readonly raw: (body: RerankBody) => boolean;
  /** Undefined for servers that always cut silently. */
  readonly tooLong: TooLong | undefined;
  readonly results: (results: readonly Result[], model: string) => unknown;
  readonly unauthorised: Reply;
}

interface RerankBody {
  readonly model?: unknown;
  readonly query: string;
  readonly documents?: readonly string[];
  readonly texts?: readonly string[];
  readonly raw_scores?: boolean;
  readonly use_activation?: boolean;
  readonly truncate?: boolean;
}

interface Result {
  readonly index: number;
  readonly score: number;
}

const usage = { total_tokens: 1 };
const relevance = (results: readonly Result[]) =>
  results.map(({ index, score }) => ({ index, relevance_score: score }));

const VLLM: Manner = {
  path: '/v1/rerank',
  texts: 'documents',
  raw: ({ use_activation }) => use_activation === false,
  tooLong: TOO_LONG.vllm,
  results: (results, model) => ({ id: 'rerank-1', model, usage, results: relevance(results) }),
  unauthorised: { status: 401, body: { error: 'Unauthorized' } },
};
const MANNERS: Readonly<Record<RerankServer, Manner>> = {
  vllm: VLLM,
  // It is hosted: of a text that is too long it reads the beginning, and it has no switch for raw scores.
  cohere: { ...VLLM, path: '/v2/rerank', raw: () => false, tooLong: undefined },
  infinity: {
    ...VLLM,
    path: '/rerank',
    raw: ({ raw_scores }) => raw_scores === true,
    tooLong: undefined,
    results: (results, model) => ({ object: 'rerank', model, usage, results: relevance(results) }),
    unauthorised: { status: 401, body: { detail: 'Unauthorized' } },
  },
  'llama.cpp': {
    ...VLLM,
    raw: () => true,
    tooLong: TOO_LONG['llama.cpp'],
    results: (results, model) => ({ model, object: 'list', usage, results: relevance(results) }),
    unauthorised: {
      status: 401,
      body: { error: { code: 401, message: 'Invalid API Key', type: 'authentication_error' } },
    },
  },
  sglang: {
    ...VLLM,
    raw: () => false,
    tooLong: TOO_LONG['older vllm'],
    results: (results) => results.map(({ index, score }) => ({ score, document: 'as it was', index })),
  },
  tei: {
    path: '/rerank',
    texts: 'texts',
    raw: ({ raw_scores }) => raw_scores === true,
    tooLong: TOO_LONG.tei,
    results: (results) => results,
    unauthorised: { status: 401, body: '' },
  },
};

/** What text-embeddings-inference takes in a request by default. */
const TEI_ROWS = 32;

/** A server of a reranker. */
export interface RerankServed {
  readonly server: RerankServer;
  readonly scorer: PairScorer;
  /** The name that requests may give; any other is refused. */
  readonly model: string;
  /** Tokens of a pair. */
  readonly maxTokens: number;
}

/** Speaks as that server does. */
export function rerankDialect({ server, scorer, model, maxTokens }: RerankServed): ServedDialect {
  const manner = MANNERS[server];
  const textsOf = (body: RerankBody): readonly string[] => body[manner.texts] ?? [];
  const isTei = server === 'tei';

  /** The pair as it is read, or a refusal. */
  const admit = (pair: Pair, body: RerankBody): Pair | Reply => {
    if (lengthOf(pair) <= maxTokens) return pair;
    const cuts = manner.tooLong === undefined || (isTei && body.truncate !== false);
    return cuts ? cut(pair, maxTokens) : (manner.tooLong as TooLong)(lengthOf(pair), maxTokens);
  };

  return {
    path: manner.path,
    unauthorised: manner.unauthorised,
    rows: (body) => textsOf(body as RerankBody).length,
    async answer(raw) {
      const body = raw as RerankBody;
      const texts = textsOf(body);
      if (typeof body.query !== 'string' || texts.length === 0) {
        return { status: 422, body: { detail: [{ loc: ['body', manner.texts], msg: 'Field required' }] } };
      }
      if (body.model !== undefined && body.model !== model) {
        return {
          status: 404,
          body: { error: { message: `The model ${String(body.model)} does not exist.`, code: 404 } },
        };
      }
      if (isTei && texts.length > TEI_ROWS) {
        const error = `batch size ${texts.length} > maximum allowed batch size ${TEI_ROWS}`;
        return { status: 413, body: { error, error_type: 'Validation' } };
      }
      const results: Result[] = [];
      for (const [index, text] of texts.entries()) {
        const pair = admit(scorer.pair(body.query, text), body);
        if ('status' in pair) return pair;
        const logit = await scorer.logit(pair);
        results.push({ index, score: manner.raw(body) ? logit : 1 / (1 + Math.exp(-logit)) });
      }
      // All of these servers answer with the best first.
      results.sort((a, b) => b.score - a.score);
      return { status: 200, body: manner.results(results, model) };
    },
  };
}

/** Takes tokens from the longer of the two texts until the pair fits. */
function cut({ query, document }: Pair, maxTokens: number): Pair {
  let [first, second] = [query, document];
  while (lengthOf({ query: first, document: second }) > maxTokens) {
    if (first.length > second.length) first = first.slice(0, -1);
    else second = second.slice(0, -1);
  }
  return { query: first, document: second };
}
