/**
 * The mock's faults, behind the real gate: they strike requests that the gate has let in, and errors are written by the
 * service's own code, so that each looks in every protocol exactly as the real service would send it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Call } from '../domain/call.ts';
import { DomainError, ERROR_TABLE, type ErrorReason } from '../domain/errors.ts';
import { type Access, Gate, type GateOptions, type Origin } from '../domain/gate.ts';
import type { Parsed } from '../domain/settings.ts';
import { Exchange } from '../wire/http/exchange.ts';
import { type HttpRequest, type HttpResponse, isHttp2 } from '../wire/http/messages.ts';
import { fraction } from './mock-engine.ts';

/** A fault that strikes by chance, at this rate from 0 to 1. */
export interface ChanceFault {
  readonly spec: FaultSpec;
  readonly rate: number;
}

/** The header, and metadata, that asks for a fault. */
const FAULT_HEADER = 'umpire-mock';

/** How many names of `first=N; id=NAME` are remembered. */
const MAX_NAMES = 10_000;

/**
 * A gate that lets faults strike. Which of them strike by chance follows from the seed and the order of the requests; a
 * fault that the header asks for goes before them.
 */
export class FaultyGate extends Gate {
  readonly #chances: readonly ChanceFault[];
  readonly #seed: number;
  readonly #seen = new LRUCache<string, number>({ maxSize: MAX_NAMES, sizeCalculation: () => 1 });
  #draws = 0;

  constructor(options: GateOptions, chances: readonly ChanceFault[], seed: number) {
    super(options);
    this.#chances = chances;
    this.#seed = seed;
  }

  override async admit(call: Call, origin: Origin, access: Access): Promise<void> {
    await super.admit(call, origin, access);
    // Every fault draws for every request, so that a change of one's rate does not change when the others strike.
    const struck = this.#chances.filter(({ rate }) => fraction(`${this.#seed}:${this.#draws++}`) < rate);
    if (!(call instanceof Exchange)) return;
    const spec = this.#asked(call) ?? struck[0]?.spec;
    if (spec !== undefined) await strike(call, spec);
  }

  #asked({ request }: Exchange): FaultSpec | undefined {
    const header = request.headers[FAULT_HEADER];
    if (header === undefined) return undefined;
    const parsed = parseFault(String(header));
    if ('problem' in parsed) throw new DomainError('MALFORMED_REQUEST', `${FAULT_HEADER}: ${parsed.problem}`);
    const spec = parsed.value;
    if (spec.first === undefined) return spec;
    const count = (this.#seen.get(spec.first.id) ?? 0) + 1;
    this.#seen.set(spec.first.id, count);
    return count <= spec.first.count ? spec : undefined;
  }
}

async function strike(exchange: Exchange, { error, retryAfter, delay, cut }: FaultSpec): Promise<void> {
  if (delay > 0) await sleep(delay, undefined, { ref: false });
  if (cut === 'answer') {
    sever(exchange.request, exchange.response);
    throw new DomainError('CANCELED', 'the connection was cut on request');
  }
  if (cut === 'body') cutBody(exchange);
  if (error === undefined) return;
  const seconds = retryAfter === undefined ? usualWait(error) : retryAfter;
  throw new DomainError(error, 'the mock was asked for this error', {
    param: error === 'MODEL_UNAVAILABLE' ? 'model' : null,
    ...(seconds === null ? {} : { retryAfter: seconds }),
  });
}

/** The least seconds that the service itself would name; null where it names none. */
function usualWait(error: keyof typeof ERROR_TABLE): number | null {
  const { http } = ERROR_TABLE[error];
  return (http === 429 || http === 503) && error !== 'QUOTA_EXCEEDED' ? 1 : null;
}

/** Closes the connection, or over HTTP/2 the stream alone, without an answer. */
function sever(request: HttpRequest, response: HttpResponse): void {
  if (isHttp2(request)) (response as unknown as { stream: { destroy(error: Error): void } }).stream.destroy(SEVERED);
  else request.socket.destroy();
}

const SEVERED = new Error('cut on request');

/** Sends half of the first piece of the body and then nothing more. */
function cutBody({ request, response }: Exchange): void {
  const write = response.write.bind(response);
  const cut = (chunk: unknown): boolean => {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) sever(request, response);
    else {
      const bytes = Buffer.from(chunk as string);
      // The half must have been sent before the connection is closed: what is only queued would be discarded.
      write(bytes.subarray(0, Math.ceil(bytes.length / 2)), () => sever(request, response));
    }
    return true;
  };
  response.write = cut as typeof response.write;
  response.end = ((chunk: unknown) => {
    cut(chunk);
    return response;
  }) as typeof response.end;
}

// What the mock is asked to do wrong, in one line, in the header `Umpire-Mock` (gRPC: metadata) or in `--fault`:
//
//     spec = part { ";" part } ;
//     part = STATUS | CODE                  such as 429 or overloaded: that error; 429, 500 and 503 are
//                                           rate_limit_exceeded, internal and overloaded
//          | "retry-after=" SECONDS | "retry-after=none"
//          | "delay=" MILLISECONDS          before anything else
//          | "cut=answer" | "cut=body"      closes the connection instead of the answer, or in the middle of its body
//          | "first=" N ";" "id=" NAME      only the first N requests of that name, so that a retry gets through

/** What is done wrong to one request. */
export interface FaultSpec {
  readonly error: ErrorReason | undefined;
  /** Seconds; null for none; undefined for what the service would say. */
  readonly retryAfter: number | null | undefined;
  /** Milliseconds. */
  readonly delay: number;
  readonly cut: 'answer' | 'body' | undefined;
  readonly first: { readonly count: number; readonly id: string } | undefined;
}

const BY_STATUS: Readonly<Record<string, ErrorReason>> = {
  429: 'RATE_LIMIT_EXCEEDED',
  500: 'INTERNAL',
  503: 'OVERLOADED',
};
/** Milliseconds: twice as long as any call may take. */
const MAX_DELAY = 60_000;

/** Reads the text of a spec. */
export function parseFault(text: string): Parsed<FaultSpec> {
  let error: ErrorReason | undefined;
  const values: Record<string, string> = {};
  for (const part of text.split(';').map((piece) => piece.trim())) {
    const [, name = '', value = ''] = /^([a-z-]+)\s*=\s*(\S+)$/.exec(part) ?? [];
    if (name !== '') {
      if (!['retry-after', 'delay', 'cut', 'first', 'id'].includes(name)) return { problem: `there is no '${name}='` };
      values[name] = value;
      continue;
    }
    const reason = BY_STATUS[part] ?? part.toUpperCase();
    // CANCELED is never sent: its caller is gone.
    if (!isReason(reason) || reason === 'CANCELED' || part !== part.toLowerCase()) {
      return { problem: `'${part}' is neither 429, 500, 503, the code of an error, nor NAME=VALUE` };
    }
    error = reason;
  }
  const { 'retry-after': retry, delay = '0', cut, first, id } = values;
  if (retry !== undefined && retry !== 'none' && !/^[1-9]\d{0,4}$/.test(retry))
    return { problem: 'retry-after: seconds or none' };
  if (!/^\d{1,5}$/.test(delay) || Number(delay) > MAX_DELAY)
    return { problem: `delay: milliseconds, at most ${MAX_DELAY}` };
  if (cut !== undefined && cut !== 'answer' && cut !== 'body') return { problem: 'cut: answer or body' };
  if ((first === undefined) !== (id === undefined)) return { problem: 'first=N and id=NAME belong together' };
  if (first !== undefined && !/^[1-9]\d{0,3}$/.test(first)) return { problem: 'first: a number from 1' };
  if (id !== undefined && id.length > 64) return { problem: 'id: at most 64 characters' };
  const value: FaultSpec = {
    error,
    retryAfter: retry === undefined ? undefined : retry === 'none' ? null : Number(retry),
    delay: Number(delay),
    cut,
    first: first === undefined || id === undefined ? undefined : { count: Number(first), id },
  };
  return { value };
}

function isReason(text: string): text is ErrorReason {
  return Object.hasOwn(ERROR_TABLE, text);
}
