/** The tools that an agent gets: they decide and show what can be decided with, and change nothing. */
import { type CallToolResult, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { ModelStatus } from '../../gen/umpire/v1/model_service_pb.ts';
import type { ErrorReason } from '../domain/errors.ts';
import { Refused } from '../front/refused.ts';
import type { Terms, Umpire } from '../front/umpire.ts';
import { VERSION } from '../version.ts';

/** What an operator decides. */
export interface ToolOptions {
  /** The model of decisions that name none. */
  readonly model: string;
  /** The catalogs that are shown, of those that the key owns: the contract has no list of them. */
  readonly catalogs: readonly string[];
}

/** Milliseconds that one call of a tool may take. */
const TIME = 30_000;
const ANNOTATIONS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;

interface Decide {
  readonly text: string;
  readonly question: string;
  readonly choices?: string[];
  readonly catalog?: string;
  readonly model?: string;
}

const TEXT = { type: 'string', minLength: 1 } as const;
const DECIDE = fromJsonSchema<Decide>({
  type: 'object',
  properties: {
    text: { ...TEXT, description: 'The text to decide about' },
    question: { ...TEXT, description: 'The question, such as: Which team should handle this?' },
    choices: {
      type: 'array',
      items: TEXT,
      minItems: 2,
      maxItems: 300,
      uniqueItems: true,
      description:
        'The allowed answers. An answer decides better with its meaning, such as "billing: payments, invoices, refunds"; one that says "none of these" is needed where nothing may fit',
    },
    catalog: { ...TEXT, description: 'The id of a stored list of answers, in place of choices' },
    model: { ...TEXT, description: 'A model of list_models; may be left out' },
  },
  required: ['text', 'question'],
  additionalProperties: false,
});
const NOTHING = fromJsonSchema<Record<string, never>>({ type: 'object', properties: {}, additionalProperties: false });
const object = (properties: Readonly<Record<string, object>>) =>
  ({ type: 'object', properties, required: Object.keys(properties) }) as const;
const listOf = (properties: Readonly<Record<string, object>>) =>
  ({ type: 'array', items: object(properties) }) as const;
const [STRING, NUMBER, COUNT] = [{ type: 'string' }, { type: 'number' }, { type: 'integer' }] as const;
const PROBABILITY = { choice: STRING, probability: NUMBER } as const;
const LIMITS = object({ choices: COUNT, input_tokens: COUNT, candidate_tokens: COUNT });
const CATALOG = { id: STRING, model: STRING, version: STRING, choices: { type: 'array', items: STRING } } as const;

const STATUSES: Partial<Record<ModelStatus, string>> = {
  [ModelStatus.READY]: 'ready',
  [ModelStatus.DISABLED]: 'disabled',
};

/** What to change, for the errors that an agent can do something about. */
const ADVICE: Partial<Record<ErrorReason, string>> = {
  UNKNOWN_MODEL: 'Call list_models and name one of its models, or none.',
  MODEL_DISABLED: 'Call list_models and name one that is ready.',
  CHOICES_OR_CATALOG: 'Give either choices or catalog.',
  INVALID_CHOICES: 'Give 2 to 300 choices, all different and none empty.',
  INPUT_TOKENS_EXCEEDED: 'Shorten the text: nothing is ever cut.',
  CANDIDATE_TOKENS_EXCEEDED: 'Shorten the choices to at most a sentence each.',
  UNKNOWN_CATALOG: 'Give choices, or the id of a catalog that the key owns.',
  CATALOG_NOT_FOUND: 'Give choices, or the id of a catalog that the key owns.',
  CATALOG_MODEL_MISMATCH: 'Leave the model out: the catalog says which it is.',
  AUTHENTICATION_REQUIRED: 'The operator of this server has to give it a valid key.',
  RATE_LIMIT_EXCEEDED: 'Wait before you call again.',
  CONCURRENCY_LIMIT_EXCEEDED: 'Make fewer calls at a time.',
  QUOTA_EXCEEDED: 'The quota of the day is used up: do not call again today.',
};

/** A server with the tools. `headers`: whose calls they are. Without a key there is no `list_catalogs`. */
export function toolServer(options: ToolOptions, umpire: Umpire, headers: Terms['headers']): McpServer {
  const server = new McpServer({ name: 'umpire', version: VERSION }, { capabilities: { tools: {} } });
  const terms = (signal: AbortSignal): Terms => ({ headers, signal, deadline: performance.now() + TIME });

  server.registerTool(
    'decide',
    {
      title: 'Decide',
      description:
        'Picks exactly one of the given answers to a question about a text, with a calibrated probability for each. Fast and repeatable: the same call gets the same answer.',
      inputSchema: DECIDE,
      outputSchema: fromJsonSchema(
        object({ choice: STRING, confidence: NUMBER, model: STRING, probabilities: listOf(PROBABILITY) }),
      ),
      annotations: ANNOTATIONS,
    },
    (args, { mcpReq: { signal } }) => answered(() => decide(args, options.model, umpire, terms(signal))),
  );
  server.registerTool(
    'list_models',
    {
      title: 'List models',
      description: 'The models that decide can name, whether they are ready, and the largest request that each takes.',
      inputSchema: NOTHING,
      outputSchema: fromJsonSchema(object({ models: listOf({ id: STRING, status: STRING, limits: LIMITS }) })),
      annotations: ANNOTATIONS,
    },
    (_, { mcpReq: { signal } }) => answered(() => listModels(umpire, terms(signal))),
  );
  if (headers.authorization !== undefined) {
    server.registerTool(
      'list_catalogs',
      {
        title: 'List catalogs',
        description:
          "The stored lists of answers that decide can name as catalog: those of this server's that the key owns.",
        inputSchema: NOTHING,
        outputSchema: fromJsonSchema(object({ catalogs: listOf(CATALOG) })),
        annotations: ANNOTATIONS,
      },
      (_, { mcpReq: { signal } }) => answered(() => listCatalogs(options.catalogs, umpire, terms(signal))),
    );
  }
  return server;
}

async function decide({ text, question, ...asked }: Decide, usualModel: string, umpire: Umpire, terms: Terms) {
  const { choices, catalog } = asked;
  if ((choices === undefined) === (catalog === undefined))
    throw new Refused('CHOICES_OR_CATALOG', 'exactly one of choices and catalog is needed');
  // Two texts with different halves would be one text in UTF-8.
  if (![text, question, ...(choices ?? [])].every((each) => each.isWellFormed()))
    throw new Refused('INVALID_VALUE', 'a text has half of a surrogate pair');
  const model = asked.model ?? (catalog === undefined ? usualModel : (await umpire.catalog(catalog, terms)).model);
  const request = { model, input: text, instruction: question, ...(choices === undefined ? { catalog } : { choices }) };
  const decision = await umpire.decide(request as never, terms);
  const { choice = '', confidence = 0, probabilities = {} } = decision.output ?? {};
  return {
    choice,
    confidence,
    model: decision.model,
    probabilities: Object.entries(probabilities)
      .map(([name, probability]) => ({ choice: name, probability }))
      .sort((a, b) => b.probability - a.probability),
  };
}

async function listModels(umpire: Umpire, terms: Terms) {
  const models = await umpire.models(terms);
  return {
    models: models.map(({ id, status, limits }) => ({
      id,
      status: STATUSES[status] ?? 'unavailable',
      limits: {
        choices: limits?.choices ?? 0,
        input_tokens: limits?.inputTokens ?? 0,
        candidate_tokens: limits?.candidateTokens ?? 0,
      },
    })),
  };
}

async function listCatalogs(ids: readonly string[], umpire: Umpire, terms: Terms) {
  const found = await Promise.all(
    ids.map((id) =>
      umpire.catalog(id, terms).catch((error: Refused) => {
        if (error.reason === 'CATALOG_NOT_FOUND') return undefined;
        throw error;
      }),
    ),
  );
  const catalogs = found.filter((catalog) => catalog !== undefined);
  return { catalogs: catalogs.map(({ id, model, version, choices }) => ({ id, model, version, choices })) };
}

/** The result as structure and as text, or the error with what to change. */
async function answered(result: () => Promise<Record<string, unknown>>): Promise<CallToolResult> {
  try {
    const structuredContent = await result();
    return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const { reason, code, message, retryAfter } = error;
    const wait = retryAfter === undefined ? '' : ` Not before ${retryAfter} s.`;
    const text = `${code}: ${message}. ${ADVICE[reason] ?? ''}${wait}`.trim();
    return { content: [{ type: 'text', text }], isError: true };
  }
}
