/**
 * Every dialect that is spoken over HTTP: a server of it, a package that names the server, and what is no answer in it.
 */
import type { ServedDialect } from './http-models/server.ts';
import { systemOneDialect } from './http-models/system-one.ts';
import { createEncoder } from './http-models/text-models.ts';
import { rerankOptions, servedEncoder, servedReranker, TEXT_EMBEDDING_OPTIONS } from './remote-packages.ts';

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

/** A distribution over choices, in the order of the body. */
type Distribution = readonly (readonly [string, unknown])[];

/** Ways to spoil a distribution. */
function spoiledDistributions(change: (body: never, change: (all: Distribution) => Distribution) => unknown) {
  const spoil = (how: (all: Distribution) => Distribution) => (body: never) => change(body, how);
  const first = (value: unknown) => spoil(([[choice = ''] = [], ...rest]) => [[choice, value], ...rest]);
  return {
    'a choice is missing': spoil((all) => all.slice(1)),
    'there are no choices': spoil(() => []),
    'a choice is another': spoil(([[choice, p] = ['', 0], ...rest]) => [[choice.toUpperCase(), p], ...rest]),
    'there is a choice too many': spoil((all) => [...all, ['more', 0.1]]),
    'a probability is a text': first('0.5'),
    'a probability is null': first(null),
    'a probability is negative': first(-0.25),
    'a probability is over 1': first(1.5),
    'a probability is NaN': (body: never) =>
      JSON.stringify(change(body, (all) => all.map(([choice]) => [choice, 7.5]))).replace('7.5', 'NaN'),
    'all are 0': spoil((all) => all.map(([choice]) => [choice, 0])),
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

const CANARY = { input: 'abc', instruction: 'abc', choices: ['a', 'zz'], choice: 'zz' };
const LIMITS = { input_tokens: 40, candidate_tokens: 12, choices: 100 };
const ROWS = 7;
const BATCH = { rows: ROWS };
const DECIDER_OPTIONS = {
  ...{ dialect: 'system-one', model: 'small', cuts: 'refuses', tokenizer: 'tokenizer.json', temperature: 1 },
};

/** All of them, by the name of the tests. */
export const DIALECT_CASES: Readonly<Record<string, DialectCase>> = {
  'rerank, documents': {
    served: () => servedReranker('vllm'),
    options: { ...rerankOptions('vllm'), batch: BATCH },
    manifest: { canary: CANARY, limits: LIMITS },
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
    options: { ...rerankOptions('tei'), batch: BATCH },
    manifest: { canary: CANARY, limits: LIMITS },
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
    options: { ...TEXT_EMBEDDING_OPTIONS, batch: BATCH },
    manifest: { limits: LIMITS },
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
  'system-one': {
    served: () => servedDecider('systemone'),
    options: { ...DECIDER_OPTIONS, variant: 'systemone' },
    manifest: { limits: LIMITS },
    rows: 1,
    nonsense: {
      ...NEVER,
      ...spoiledDistributions((body: { answers: Record<string, Item> }, change) => ({
        ...body,
        answers: mapped(body.answers, (answer) => ({
          ...answer,
          probabilities: Object.fromEntries(change(Object.entries(answer.probabilities as Item))),
        })),
      })),
      'another question is answered': (body: { answers: Record<string, Item> }) => ({
        answers: { other: Object.values(body.answers)[0] },
      }),
      'the answers are none': () => ({ answers: null }),
    },
  },
  'system-one, decisions': {
    served: () => servedDecider('decisions'),
    options: { ...DECIDER_OPTIONS, variant: 'decisions' },
    manifest: { limits: LIMITS },
    rows: 1,
    nonsense: {
      ...NEVER,
      ...spoiledDistributions((body: { answers: Item[] }, change) => ({
        ...body,
        answers: body.answers.map((answer) => ({
          ...answer,
          probabilities: change(
            (answer.probabilities as { value: string; probability: number }[]).map((each) => [
              each.value,
              each.probability,
            ]),
          ).map(([value, probability]) => ({ value, probability })),
        })),
      })),
      'another question is answered': (body: { answers: Item[] }) => ({
        answers: body.answers.map((answer) => ({ ...answer, name: 'other' })),
      }),
      'the model refuses to answer': (body: { answers: Item[] }) => ({
        answers: body.answers.map(({ name }) => ({ name, type: 'refusal' })),
      }),
    },
  },
};

/** A decision server that decides as `tiny` does. */
async function servedDecider(variant: 'systemone' | 'decisions'): Promise<ServedDialect> {
  return systemOneDialect({
    ...{ variant, encoder: await createEncoder(), model: 'small', options: 255 },
    ...{ maxTokens: 64, jointWeight: 0.25, temperature: 0.5 },
  });
}

function mapped<T>(record: Readonly<Record<string, T>>, map: (value: T) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}
