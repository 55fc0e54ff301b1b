/**
 * Every dialect: a server of it, a package that names the server, what it fails with, and what is no answer in it.
 * One file: the cases share their faults and their ways to spoil an answer.
 */
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type { ExecutionContext } from 'ava';
import { type ModelInferResponse, ModelInferResponseSchema } from '../../../gen/inference/grpc_predict_v2_pb.ts';
import { chatDialect, SPOILED_ANSWERS, SPOILED_LETTERS } from './http-models/chat.ts';
import type { Fault } from './http-models/faults.ts';
import { type ServedDialect, startHttpModelServer } from './http-models/server.ts';
import { systemOneDialect } from './http-models/system-one.ts';
import { createEncoder } from './http-models/text-models.ts';
import { startInferenceServer } from './inference-server.ts';
import { encoderGraph } from './packages.ts';
import {
  CHAT_OPTIONS,
  EMBEDDING_OPTIONS,
  rerankOptions,
  servedEncoder,
  servedReranker,
  TEXT_EMBEDDING_OPTIONS,
} from './remote-packages.ts';

/** A server in the hands of a test, whatever it speaks. */
export interface DialectServer {
  readonly address: string;
  /** Changed by `Object.assign`: a fault or what falsifies an answer is the dialect's own. */
  readonly behaviour: { delay: number; frozen: boolean; healthy: boolean; token: string | undefined };
  readonly requests: readonly {
    readonly rows: number;
    readonly digest: string;
    readonly canceled: boolean;
    readonly sent?: number;
  }[];
  readonly busiest: number;
  kill(): Promise<void>;
  revive(): Promise<void>;
}

/** Faults by what they are. */
type Faults = Readonly<Record<string, unknown>>;

/** A dialect as the shared tests try it. */
export interface DialectCase {
  start(t: ExecutionContext<unknown>): Promise<DialectServer>;
  readonly over: 'HTTP' | 'gRPC';
  /** Faults that a call is made again for, and those that are final. */
  readonly passing: Faults;
  readonly final: Faults;
  /** Of the package. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly manifest: Readonly<Record<string, unknown>>;
  /** Rows that its package allows in a request. */
  readonly rows: number;
  /** Makes no answer of one, in each of these ways. */
  readonly nonsense: Readonly<Record<string, (body: never) => unknown>>;
}

/** A fault that is an answer. */
export const reply = (status: number, headers: Readonly<Record<string, string>> = {}, body: unknown = {}): Fault => ({
  kind: 'reply',
  reply: { status, body, headers },
});

/** What a server over HTTP fails with. */
const HTTP = {
  over: 'HTTP',
  passing: {
    'a 429': reply(429),
    'a 502 with a page': reply(502, { 'content-type': 'text/html' }, '<h1>Bad Gateway</h1>'),
    'a 503': reply(503),
    'a connection that ends without an answer': { kind: 'reset' },
    'a connection that ends in the middle of one': { kind: 'cut' },
  },
  final: {
    'a redirect to the same place': reply(307, { location: '/' }),
    'a 400': reply(400),
    'a 401': reply(401),
    'a 403': reply(403),
    'a 404': reply(404),
    'a 500': reply(500, { 'x-secret': 'secret' }, { error: 'secret: abz' }),
    'no content': reply(204, {}, ''),
    'something else than HTTP': { kind: 'babble' },
    'too many headers': { kind: 'headers' },
    'a compressed answer': { kind: 'compressed' },
    'an answer without an end': { kind: 'endless' },
  },
} as const;

const grpcFault = (code: number) => [status[code] as string, { code, details: 'secret: abz' }] as const;
/** What a server over gRPC fails with. */
const GRPC = {
  over: 'gRPC',
  passing: Object.fromEntries([grpcFault(status.UNAVAILABLE)]),
  final: Object.fromEntries(
    [status.INTERNAL, status.INVALID_ARGUMENT, status.RESOURCE_EXHAUSTED, status.UNAUTHENTICATED].map(grpcFault),
  ),
} as const;

/** Starts a server that speaks over HTTP. */
const overHttp = (served: () => Promise<ServedDialect>) => async (t: ExecutionContext<unknown>) =>
  await startHttpModelServer(t, await served());

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

/** Ways to spoil an answer of the Open Inference Protocol. */
const change = (response: ModelInferResponse, changes: object): ModelInferResponse =>
  create(ModelInferResponseSchema, { ...response, ...changes } as never);
const [floats, halves] = [(count: number) => new Uint8Array(4 * count), (count: number) => new Uint8Array(2 * count)];
const output = (response: ModelInferResponse, changes: object) =>
  change(response, { outputs: [{ ...(response.outputs[0] as object), ...changes }] });

/** All of them, by the name of the tests. */
export const DIALECT_CASES: Readonly<Record<string, DialectCase>> = {
  'rerank, documents': {
    ...HTTP,
    start: overHttp(() => servedReranker('vllm')),
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
    ...HTTP,
    start: overHttp(() => servedReranker('tei')),
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
    ...HTTP,
    start: overHttp(() => servedEncoder()),
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
    ...HTTP,
    start: overHttp(() => servedDecider('systemone')),
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
    ...HTTP,
    start: overHttp(() => servedDecider('decisions')),
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
  chat: {
    ...HTTP,
    start: overHttp(() => servedChat()),
    options: CHAT_OPTIONS,
    manifest: { limits: LIMITS },
    rows: 1,
    nonsense: { ...NEVER, ...SPOILED_LETTERS },
  },
  'chat, by answers': {
    ...HTTP,
    start: overHttp(() => servedChat()),
    options: { ...CHAT_OPTIONS, scores: 'choice', rotations: 2 },
    manifest: { limits: LIMITS },
    rows: 1,
    nonsense: { ...NEVER, ...SPOILED_ANSWERS },
  },
  'open-inference': {
    ...GRPC,
    start: (t) => startInferenceServer(t, { graph: encoderGraph(), output: 'embedding' }),
    options: { ...EMBEDDING_OPTIONS, dialect: 'open-inference', batch: BATCH, message_bytes: 65_536 },
    manifest: { limits: LIMITS },
    rows: ROWS,
    nonsense: {
      'no output': (response: ModelInferResponse) => change(response, { outputs: [], rawOutputContents: [] }),
      'another name': (response: ModelInferResponse) => output(response, { name: 'other' }),
      'another datatype': (response: ModelInferResponse) => output(response, { datatype: 'FP16' }),
      'a row too few': (response: ModelInferResponse) => output(response, { shape: [0n, 8n] }),
      'a row too many': (response: ModelInferResponse) => output(response, { shape: [9n, 8n] }),
      'another width': (response: ModelInferResponse) =>
        output(response, { shape: [response.outputs[0]?.shape[0] ?? 1n, 4n] }),
      'one more dimension': (response: ModelInferResponse) => output(response, { shape: [1n, 1n, 8n] }),
      'too few values': (response: ModelInferResponse) => change(response, { rawOutputContents: [floats(3)] }),
      'half a value': (response: ModelInferResponse) => change(response, { rawOutputContents: [halves(3)] }),
      'no values': (response: ModelInferResponse) => change(response, { rawOutputContents: [] }),
      'not a number': (response: ModelInferResponse) =>
        change(response, {
          rawOutputContents: response.rawOutputContents.map((raw) => new Uint8Array(raw).fill(0xff)),
        }),
      'no direction': (response: ModelInferResponse) =>
        change(response, { rawOutputContents: response.rawOutputContents.map((raw) => new Uint8Array(raw.length)) }),
      "another request's id": (response: ModelInferResponse) => change(response, { id: 'another' }),
      'more than a message may hold': (response: ModelInferResponse) =>
        change(response, { rawOutputContents: [new Uint8Array(2 ** 21)] }),
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

/** A chat server that decides as `tiny` does. */
async function servedChat(): Promise<ServedDialect> {
  return chatDialect({
    ...{ encoder: await createEncoder(), model: 'small', maxTokens: 2000, jointWeight: 0.25, temperature: 0.5 },
  });
}

function mapped<T>(record: Readonly<Record<string, T>>, map: (value: T) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}
