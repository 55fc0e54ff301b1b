/** Every dialect that is spoken over HTTP: a server of it, a package that names the server, and what is no answer in it. */
import type { ServedDialect } from './http-models/server.ts';
import { rerankOptions, servedEncoder, servedReranker, textEmbeddingOptions } from './remote-packages.ts';

/** A dialect as the shared tests try it. */
export interface DialectCase {
  served(): Promise<ServedDialect>;
  /** Of the package. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly manifest: Readonly<Record<string, unknown>>;
  /** Rows that its package allows in a request. */
  readonly rows: number;
  /** Makes no answer of one, in each of these ways. */
  readonly nonsense: Readonly<Record<string, (body: never) => unknown>>;
}

/** A result, or a vector, with its place. */
type Item = Readonly<Record<string, unknown>>;

/** Ways to spoil a list of items that have places; `field` holds an item's number or numbers. */
function spoiledLists(
  field: string,
  with_: (body: never, items: readonly Item[]) => unknown,
  of: (body: never) => readonly Item[],
) {
  const spoil = (change: (items: readonly Item[]) => readonly unknown[]) => (body: never) =>
    with_(body, change(of(body)) as readonly Item[]);
  const first = (change: (item: Item) => unknown) => spoil(([item = {}, ...rest]) => [change(item), ...rest]);
  return {
    'an item is missing': spoil((items) => items.slice(1)),
    'there are no items': spoil(() => []),
    'an item is there twice': spoil((items) => [...items.slice(1), items.at(-1)]),
    'there is an item too many': spoil((items) => [...items, { ...items[0], index: items.length }]),
    'a place is beyond the request': first((item) => ({ ...item, index: 10_000 })),
    'a place is negative': first((item) => ({ ...item, index: -1 })),
    'a place is a text': first((item) => ({ ...item, index: '0' })),
    'a place is broken': first((item) => ({ ...item, index: 0.5 })),
    'a number is missing': first(({ [field]: _, ...item }) => item),
    'a number is a text': first((item) => ({ ...item, [field]: '1' })),
    'a number is null': first((item) => ({ ...item, [field]: null })),
    'an item is null': first(() => null),
    'the list is none': (body: never) => with_(body, 'none' as never),
    'a number is NaN': (body: never) =>
      JSON.stringify(body).replace(new RegExp(`"${field}":(\\[?)[-0-9.e]+`), `"${field}":$1NaN`),
    'a number is infinite': (body: never) =>
      JSON.stringify(body).replace(new RegExp(`"${field}":(\\[?)[-0-9.e]+`), `"${field}":$11e999`),
  };
}

/** Bodies that are no answer in any dialect. */
const NEVER: DialectCase['nonsense'] = {
  'an empty object': () => ({}),
  'an empty list': () => [],
  null: () => 'null',
  'an empty body': () => '',
  'half of the body': (body) => JSON.stringify(body).slice(0, -20),
  'two bodies': (body) => `${JSON.stringify(body)}${JSON.stringify(body)}`,
  'a page': () => '<!doctype html><title>Sign in</title>',
  'the error of another': () => ({ error: { message: 'CUDA out of memory' } }),
};

const canary = { input: 'abc', instruction: 'abc', choices: ['a', 'zz'], choice: 'zz' };
const limits = { input_tokens: 40, candidate_tokens: 12, choices: 100 };
const ROWS = 7;
const batch = { rows: ROWS };

/** All of them, by the name of the tests. */
export const dialectCases: Readonly<Record<string, DialectCase>> = {
  'rerank, documents': {
    served: () => servedReranker('vllm'),
    options: { ...rerankOptions.vllm, batch },
    manifest: { canary, limits },
    rows: ROWS,
    nonsense: {
      ...NEVER,
      ...spoiledLists(
        'relevance_score',
        (body: { results: Item[] }, results) => ({ ...body, results }),
        ({ results }: { results: Item[] }) => results,
      ),
    },
  },
  'rerank, texts': {
    served: () => servedReranker('tei'),
    options: { ...rerankOptions.tei, batch },
    manifest: { canary, limits },
    rows: ROWS,
    nonsense: {
      ...NEVER,
      ...spoiledLists(
        'score',
        (_, items) => items,
        (items: Item[]) => items,
      ),
    },
  },
  embeddings: {
    served: () => servedEncoder(),
    options: { ...textEmbeddingOptions, batch },
    manifest: { limits },
    rows: ROWS,
    nonsense: {
      ...NEVER,
      ...spoiledLists(
        'embedding',
        (body: { data: Item[] }, data) => ({ ...body, data }),
        ({ data }: { data: Item[] }) => data,
      ),
      'a vector of nothing': (body: { data: Item[] }) => ({
        data: body.data.map((each) => ({ ...each, embedding: [] })),
      }),
      'a vector without direction': (body: { data: Item[] }) => ({
        data: body.data.map((each) => ({ ...each, embedding: [0, 0, 0, 0, 0, 0, 0, 0] })),
      }),
    },
  },
};
