/** Servers of encoders that speak OpenAI's `/v1/embeddings`. */
import type { Reply } from './faults.ts';
import { TOO_LONG, type TooLong } from './refusals.ts';
import type { ServedDialect } from './server.ts';
import type { SmallEncoder } from './text-models.ts';

/** A server of an encoder. */
export interface EmbeddingsServed {
  readonly encoder: SmallEncoder;
  /** The names that requests may give, and what each puts in front of a text. */
  readonly models: Readonly<Record<string, string>>;
  readonly maxTokens: number;
  /** The words of the server that refuses a text that is too long; left out, it cuts silently. */
  readonly tooLong?: keyof typeof TOO_LONG | undefined;
  /** Texts of a request. */
  readonly maxRows?: number;
  readonly path?: string;
}

interface EmbeddingsBody {
  readonly model?: unknown;
  readonly input?: unknown;
  readonly encoding_format?: unknown;
  readonly dimensions?: unknown;
}

const openAiError = (status: number, message: string, code: string | null = null): Reply => ({
  status,
  body: { error: { message, type: 'invalid_request_error', param: null, code } },
});

/** Speaks as such a server does. */
export function embeddingsDialect({
  encoder,
  models,
  maxTokens,
  tooLong,
  maxRows = 2048,
  path = '/v1/embeddings',
}: EmbeddingsServed): ServedDialect {
  const refuse: TooLong | undefined = tooLong === undefined ? undefined : TOO_LONG[tooLong];
  const textsOf = ({ input }: EmbeddingsBody): readonly string[] =>
    typeof input === 'string' ? [input] : Array.isArray(input) ? (input as readonly string[]) : [];

  return {
    path,
    unauthorised: openAiError(401, 'Incorrect API key provided.', 'invalid_api_key'),
    rows: (body) => textsOf(body as EmbeddingsBody).length,
    async answer(raw) {
      const body = raw as EmbeddingsBody;
      const texts = textsOf(body);
      const prefix = models[String(body.model)];
      if (prefix === undefined) return openAiError(404, 'The model does not exist.', 'model_not_found');
      if (texts.length === 0) return openAiError(400, "'$.input' is invalid.");
      if (texts.length > maxRows) {
        return openAiError(413, `batch size ${texts.length} > maximum allowed batch size ${maxRows}`);
      }
      if (body.encoding_format !== undefined && body.encoding_format !== 'float') {
        return openAiError(400, 'this server of a test answers floats only');
      }
      const data: { object: string; index: number; embedding: readonly number[] }[] = [];
      for (const [index, text] of texts.entries()) {
        const ids = encoder.ids(prefix + text);
        if (ids.length > maxTokens && refuse !== undefined) return refuse(ids.length, maxTokens);
        const kept = ids.length > maxTokens ? [...ids.slice(0, maxTokens - 1), ids.at(-1) as number] : ids;
        const vector = await encoder.vector(kept);
        const width = typeof body.dimensions === 'number' ? body.dimensions : vector.length;
        data.push({ object: 'embedding', index, embedding: vector.slice(0, width) });
      }
      return {
        status: 200,
        body: { object: 'list', data, model: body.model, usage: { prompt_tokens: 1, total_tokens: 1 } },
      };
    },
  };
}
