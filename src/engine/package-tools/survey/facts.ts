/**
 * What servers say about themselves over HTTP: `GET /info` of text-embeddings-inference, and the list of models of
 * OpenAI's API (`/v1/models`, in Infinity `/models`), which decision servers also have in a form of their own. All of
 * it counts only as far as the requests that follow confirm it.
 */
import type { Asking } from './asking.ts';

/** What a server said; what it did not say is undefined. */
export interface ServerFacts {
  /** The names of its models. */
  readonly models: readonly string[];
  /** The most tokens of a text, by the name of a model; `''` for any. */
  readonly maxTokens: ReadonlyMap<string, number>;
  /** The most texts of a request. */
  readonly rows: number | undefined;
  /** The same facts as lines that the command prints. */
  readonly lines: readonly string[];
}

const LISTS = ['/v1/models', '/models'] as const;
/** The most names that are printed: more are of no use to a reader. */
const NAMED = 8;

/** Asks a server for its facts. Rejects as `Asking` does. */
export async function askFacts(asking: Asking): Promise<ServerFacts> {
  const info = objectOf(await asking.get('/info'));
  const maxTokens = new Map<string, number>();
  const lines: string[] = [];
  const models: string[] = [];
  const inputLength = wholeOf(info.max_input_length);
  if (typeof info.model_id === 'string') {
    lines.push(
      `model ${info.model_id}${typeof info.model_sha === 'string' ? `, revision ${info.model_sha}` : ''}` +
        `${typeof info.version === 'string' ? `, server version ${info.version}` : ''}`,
    );
  }
  if (inputLength !== undefined) maxTokens.set('', inputLength);
  for (const path of LISTS) {
    for (const { name, tokens } of listedIn(await asking.get(path))) {
      if (!models.includes(name)) models.push(name);
      if (tokens !== undefined) maxTokens.set(name, tokens);
    }
    if (models.length > 0) break;
  }
  if (models.length > 0) {
    lines.push(`its models: ${models.slice(0, NAMED).join(', ')}${models.length > NAMED ? ', …' : ''}`);
  }
  return { models, maxTokens, rows: wholeOf(info.max_client_batch_size), lines };
}

/** The model that requests name: the one that was asked for, or the only one. */
export function modelOf({ models }: ServerFacts, asked: string | undefined): string | undefined {
  return asked ?? (models.length === 1 ? models[0] : undefined);
}

/** The most tokens of a text of that model, if the server says them. */
export function tokensOf({ maxTokens }: ServerFacts, model: string | undefined): number | undefined {
  return (model === undefined ? undefined : maxTokens.get(model)) ?? maxTokens.get('');
}

interface ListedModel {
  readonly name: string;
  readonly tokens: number | undefined;
}

/** `{ data: [{ id, max_model_len? }] }`, or `{ models: [{ name }] }`. */
function listedIn(body: unknown): readonly ListedModel[] {
  const { data, models } = objectOf(body);
  const list = Array.isArray(data) ? data : Array.isArray(models) ? models : [];
  return (list as readonly unknown[]).flatMap((each) => {
    const { id, name, max_model_len: tokens } = objectOf(each);
    const found = typeof id === 'string' ? id : name;
    return typeof found === 'string' && found !== '' ? [{ name: found, tokens: wholeOf(tokens) }] : [];
  });
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function wholeOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : undefined;
}
