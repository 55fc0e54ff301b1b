/**
 * Measures what it costs to read a body with the reader of a checkout, compared with `JSON.parse` of the same text, and
 * prints it as JSON: `node reader.ts CHECKOUT`. It is a process of its own, so that the readers of two checkouts share
 * neither heap nor compiled code.
 */
import { pathToFileURL } from 'node:url';
import { hostileBodies } from '../../test/support/hostile-bodies.ts';

/** Bytes of the bodies: up to the most that a body may have. */
const SIZES = [1 << 16, 1 << 18, 1 << 20];
/** How often each body is read. */
const ROUNDS = 5;

/** What it costs to read one kind of body. */
export interface ReadCost {
  readonly body: string;
  readonly hostile: boolean;
  /** For each size: the least time of the rounds, as a multiple of the least time of `JSON.parse`. */
  readonly ratios: readonly number[];
  /** For each size: the longest time of the rounds, milliseconds, for which the thread was blocked. */
  readonly longest: readonly number[];
}

const WORDS = 'the customer says that an order which was paid for twice has not arrived and asks who will help '.split(
  ' ',
);
const words = (bytes: number): string => `${WORDS.join(' ').repeat(Math.ceil(bytes / 90))}`.slice(0, bytes);

/** Bodies such as callers send, except for their size. */
const ordinary: Readonly<Record<string, (size: number) => Buffer>> = {
  'a text of words': (size) =>
    Buffer.from(JSON.stringify({ model: 'm', input: words(size), instruction: 'i', choices: ['a', 'b'] })),
  '300 choices of words': (size) =>
    Buffer.from(
      JSON.stringify({
        model: 'm',
        input: 'x',
        instruction: 'i',
        choices: Array.from({ length: 300 }, (_, index) => `${index} ${words(size / 300 - 8)}`),
      }),
    ),
};

/** The reader of a checkout, from JSON to the message. */
async function readerOf(checkout: string): Promise<(bytes: Buffer) => unknown> {
  const load = (path: string) => import(pathToFileURL(`${checkout}/${path}`).href);
  const { CreateDecisionRequestSchema: schema } = await load('gen/umpire/v1/decision_service_pb.ts');
  const { compileMessageReader } = await load('src/wire/rest/message-reader.ts');
  const none = new Map<string, string>();
  // An older checkout has no scanner: it parses a body as a whole, and reads the object into a message.
  const parser = await load('src/wire/rest/strict-json.ts').catch(() => undefined);
  if (parser === undefined) {
    const read = compileMessageReader(schema);
    return (bytes) => read(bytes, none);
  }
  const read = compileMessageReader(schema, {});
  return (bytes) => {
    const { value, duplicate } = parser.parseJsonObject(bytes);
    return read(value, duplicate, none);
  };
}

/** Milliseconds of each round, whether the work returns or throws. */
function time(work: () => unknown): number[] {
  return Array.from({ length: ROUNDS }, () => {
    const began = performance.now();
    try {
      work();
    } catch {
      // A refusal is timed like any other outcome.
    }
    return performance.now() - began;
  });
}

const read = await readerOf(process.argv[2] ?? '');
const costs: ReadCost[] = [];
for (const [of, hostile] of [
  [ordinary, false],
  [hostileBodies, true],
] as const) {
  for (const [body, make] of Object.entries(of)) {
    const bytes = SIZES.map((size) => make(size - 256));
    // The first rounds let the compiler optimise.
    for (const each of bytes) time(() => read(each));
    const parsed = bytes.map((each) => Math.min(...time(() => JSON.parse(each.toString()))));
    const own = bytes.map((each) => time(() => read(each)));
    costs.push({
      body,
      hostile,
      ratios: own.map((times, index) => Math.min(...times) / (parsed[index] as number)),
      longest: own.map((times) => Math.max(...times)),
    });
  }
}
console.log(JSON.stringify(costs));
