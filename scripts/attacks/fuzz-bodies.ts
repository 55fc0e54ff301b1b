/**
 * Fuzzes bodies: `node scripts/attacks/fuzz-bodies.ts --kind json|protobuf|systemone|decisions --seconds N [--seed N]
 * [--checkout DIR]`, the last two through a bridge.
 * Bodies are generated from a seed, which is printed and reproduces them. Each is given to this service's reader and to
 * an independent one (JSON.parse, protobuf-es), and what they make of it is compared. Every eighth is also sent to a
 * service, as JSON over REST and Connect or as a protobuf over Connect, which must answer each with 200 or a 4xx, go on
 * deciding, and not grow. Prints the first difference and ends with 1.
 */
import { randomInt } from 'node:crypto';
import { Agent, request } from 'node:http';
import { parseArgs } from 'node:util';
import { fromBinary } from '@bufbuild/protobuf';
import { CreateDecisionRequestSchema } from '../../gen/umpire/v1/decision_service_pb.ts';
import { DomainError } from '../../src/domain/errors.ts';
import { type ObjectShape, scanBody } from '../../src/wire/http/strict-json.ts';
import { MessageScan } from '../../src/wire/rpc/message-scan.ts';
import { FORMS, formBody, formDifference, startBridge } from './fuzz-forms.ts';
import { ROOT, startTarget } from './target.ts';

const { values } = parseArgs({
  options: {
    kind: { type: 'string', default: 'json' },
    seconds: { type: 'string', default: '600' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    checkout: { type: 'string', default: ROOT },
  },
});
const seed = Number(values.seed);
/** A form is sent to a bridge in front of the service. */
const form = FORMS[values.kind];
const DECIDE = '/umpire.v1.DecisionService/CreateDecision';
console.log(`${values.kind}, seed ${seed}, ${values.seconds} s`);

/** The state of Mulberry32, which gives the same numbers for the same seed. */
let state = seed;
function below(bound: number): number {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
}
const one = <T>(of: readonly T[]): T => of[below(of.length)] as T;

/** A body of each form that is always answered. */
const VALID_FORMS: Readonly<Record<string, string>> = {
  systemone: '{"model":"minilm-l6","state":"x","questions":{"q":{"type":"noul","instructions":"i"}}}',
  decisions: '{"model":"minilm-l6","input":"x","questions":[{"type":"predicate","instructions":"i"}]}',
};
const NAMES = ['model', 'input', 'instruction', 'choices', 'catalog'];
const shape: ObjectShape = new Map(NAMES.map((name) => [name, name === 'choices' ? 'strings' : 'string']));
const scan = new MessageScan(CreateDecisionRequestSchema);
/** What is put into bodies: signs of JSON, parts of escapes, odd numbers and characters. */
const BITS = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '\\',
  '\\u',
  '\\ud83d',
  '\\u0000',
  ' ',
  '\n',
  '\t',
  '\u00a0',
  '\ufeff',
  '0',
  '-',
  '01',
  '1e9',
  '.5',
  'true',
  'null',
  'ü',
  '😀',
  '\u0000',
  '\u0315\u0300',
  '/',
  'x',
];
const WORDS = ['minilm-l6', 'text', '', 'a', 'b', '\\n', '\\"', 'ü', '\\u0061', '😀', '__proto__', 'x'.repeat(300)];

const text = (): string => `"${Array.from({ length: below(4) }, () => one(WORDS)).join('')}"`;
const list = (): string =>
  `[${Array.from({ length: below(6) }, () => (below(12) === 0 ? value() : text())).join(',')}]`;
const value = (): string =>
  one([text, text, list, () => one(BITS), () => `{${text()}:${text()}}`, () => '['.repeat(below(50))])();
const name = (): string => `"${below(12) === 0 ? one(WORDS) : below(8) === 0 ? '\\u006dodel' : one(NAMES)}"`;

/** A body that resembles a request: its properties with values of all kinds, and perhaps some bytes changed. */
function jsonBody(): Buffer {
  const valid = below(4) === 0;
  const pairs = valid
    ? NAMES.slice(0, 4).map((each) => `"${each}":${each === 'choices' ? list() : text()}`)
    : Array.from({ length: below(7) }, () => `${name()}:${value()}`);
  return changed(Buffer.from(`{${pairs.join(',')}}`), below(3));
}

function protobufBody(): Buffer {
  const parts: number[] = [];
  for (let field = below(12); field > 0; field -= 1) {
    const number = below(6) === 0 ? below(40) : 1 + below(5);
    const type = below(5) === 0 ? below(8) : 2;
    parts.push(...varint(number * 8 + type));
    if (type === 2) {
      const bytes = [...Buffer.from(one(WORDS))];
      parts.push(...varint(below(20) === 0 ? below(2 ** 31) : bytes.length), ...bytes);
    } else if (type === 0) parts.push(...varint(below(2 ** 31)));
    else for (let left = type === 1 ? 8 : type === 5 ? 4 : 0; left > 0; left -= 1) parts.push(below(256));
  }
  return changed(Buffer.from(parts), below(3));
}

function madeBody(): Buffer {
  if (form !== undefined) return changed(formBody(values.kind, { below, one }), below(3) === 0 ? below(3) : 0);
  return values.kind === 'json' ? jsonBody() : protobufBody();
}

function varint(number: number): number[] {
  const bytes: number[] = [];
  for (let left = number; ; left = Math.floor(left / 128)) {
    if (left < 128) return [...bytes, left];
    bytes.push((left % 128) + 128);
  }
}

function changed(body: Buffer, times: number): Buffer {
  let bytes = body;
  for (let time = 0; time < times; time += 1) {
    const at = below(bytes.length + 1);
    const put = below(3) === 0 ? Buffer.from([below(256)]) : Buffer.from(one(BITS));
    bytes = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + below(4))]);
  }
  // A few bodies are long.
  return below(200) === 0
    ? Buffer.concat([bytes, Buffer.alloc(below(200_000), bytes.length > 0 ? bytes : ' ')])
    : bytes;
}

/** How the two readers differ on a body, or undefined. */
function difference(body: Buffer): string | undefined {
  if (form !== undefined) return formDifference(values.kind, body);
  return values.kind === 'json' ? jsonDifference(body) : protobufDifference(body);
}

function jsonDifference(body: Buffer): string | undefined {
  let theirs: unknown;
  try {
    theirs = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    theirs = undefined;
  }
  const valid = typeof theirs === 'object' && theirs !== null && !Array.isArray(theirs);
  try {
    const ours = scanBody(body, shape);
    // If the scan stopped early, the rest of the body may be anything.
    if (ours.kind !== 'object') return undefined;
    if (!valid) return 'accepted, though it is not a JSON object';
    for (const [property, found] of Object.entries(theirs as object)) {
      const own = ours.values.get(property);
      const same = own !== undefined && (own.kind === 'other' || JSON.stringify(own.read()) === JSON.stringify(found));
      if (!same) return `${property} is read as another value`;
    }
    return Object.keys(theirs as object).length === ours.values.size ? undefined : 'another number of properties';
  } catch (error) {
    if (!(error instanceof DomainError)) return `threw ${error}`;
    return valid ? `refused, though it is JSON: ${error.message}` : undefined;
  }
}

function protobufDifference(body: Buffer): string | undefined {
  let fields = 0;
  try {
    const message = fromBinary(CreateDecisionRequestSchema, body);
    fields = message.choices.length + (message.$unknown?.length ?? 0);
  } catch {
    return undefined;
  }
  try {
    scan.protobuf(body);
    return fields > 4100 ? `${fields} fields passed` : undefined;
  } catch (error) {
    if (!(error instanceof DomainError)) return `threw ${error}`;
    // protobuf-es reads a field with a wrong wire type as if it had the declared one; the scan refuses it.
    const disguised = /field \d+ with the wire type \d/.test(error.message);
    return body.length < 8192 && !disguised ? `refused, though it has few fields: ${error.message}` : undefined;
  }
}

const target = await startTarget(values.checkout, {
  ...Object.fromEntries(
    ['RATE_ANONYMOUS', 'REQUEST_RATE']
      .concat(['ANONYMOUS', 'KEY', 'ALL'].map((kind) => `BODIES_${kind}`))
      .map((setting) => [`UMPIRE_${setting}`, 'off']),
  ),
});
const bridge = form === undefined ? undefined : await startBridge(values.checkout, target.port);
const port = bridge?.port ?? target.port;
const memoryNow = (): number => bridge?.memory() ?? target.memory() ?? 0;
interface Answer {
  readonly status: number;
  readonly text: string;
}
const agent = new Agent({ keepAlive: true, maxSockets: 8 });
const send = (path: string, type: string, body: Uint8Array): Promise<Answer> =>
  new Promise((resolve) => {
    const sent = request(
      { port, host: '127.0.0.1', agent, method: 'POST', path, headers: { 'content-type': type } },
      (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part) => parts.push(part));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString() }));
      },
    );
    // A kept connection may be closed just as it is used again. If the service has ended, the next one fails, too.
    sent.on('error', () => resolve(sent.reusedSocket ? send(path, type, body) : { status: 0, text: '' })).end(body);
  });
const JSON_TYPE = 'application/json';
const PROTO_TYPE = 'application/proto';

const fail = async (what: string, body: Buffer): Promise<never> => {
  console.error(`seed ${seed}: ${what}\n${body.subarray(0, 2000).toString('base64')}`);
  await bridge?.stop();
  await target.stop();
  process.exit(1);
};

let made = 0;
let sent = 0;
let decided = 0;
const ends = performance.now() + Number(values.seconds) * 1000;
let settled: number | undefined;
const began = performance.now();
while (performance.now() < ends) {
  const batch: Buffer[] = [];
  for (let each = 0; each < 64; each += 1) {
    const body = madeBody();
    made += 1;
    const found = difference(body);
    if (found !== undefined) await fail(found, body);
    if (each % 8 === 0) batch.push(body);
  }
  const outcomes = await Promise.all(
    batch.flatMap((body) =>
      form !== undefined
        ? [send(form.path, JSON_TYPE, body)]
        : values.kind === 'json'
          ? [
              send('/v1/decisions', JSON_TYPE, body),
              send('/v1/catalogs', JSON_TYPE, body),
              send(DECIDE, JSON_TYPE, body),
            ]
          : [send(DECIDE, PROTO_TYPE, body), send('/umpire.v1.CatalogService/GetCatalog', PROTO_TYPE, body)],
    ),
  );
  sent += outcomes.length;
  decided += outcomes.filter(({ status }) => status === 200).length;
  const wrong = outcomes.findIndex(({ status }) => status !== 200 && (status < 400 || status >= 500));
  const answer = outcomes[wrong];
  if (answer !== undefined)
    await fail(
      `answered ${answer.status} ${answer.text}`,
      batch[Math.floor((wrong * batch.length) / outcomes.length)] as Buffer,
    );
  // Memory is compared with what it was once the service had warmed up.
  if (settled === undefined && performance.now() - began > Math.min(60_000, Number(values.seconds) * 400))
    settled = memoryNow();
}
const body = Buffer.from(JSON.stringify({ model: 'minilm-l6', input: 'x', instruction: 'i', choices: ['a', 'b'] }));
const usual = form === undefined ? body : Buffer.from(VALID_FORMS[values.kind] ?? '');
if ((await send(form?.path ?? '/v1/decisions', JSON_TYPE, usual)).status !== 200)
  await fail('a decision is not made any more', usual);
const memory = memoryNow();
console.log(
  `${made} bodies, ${sent} sent and ${decided} of them decided, no difference, none answered with 5xx; ${settled?.toFixed(0)} → ${memory.toFixed(0)} MiB`,
);
if (memory > (settled ?? memory) * 1.3 + 20) await fail('it grew', body);
await bridge?.stop();
await target.stop();
