/**
 * The mock's faults, behind the real gate: they strike requests that the gate has let in, and errors are written by the
 * service's own code, so that each looks in every protocol exactly as the real service would send it.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { DomainError, ERROR_TABLE } from '../domain/errors.ts';
import type { Gate } from '../wire/call/gate.ts';
import type { Exchange } from '../wire/http/exchange.ts';
import { type HttpRequest, type HttpResponse, isHttp2 } from '../wire/http/messages.ts';
import { type FaultSpec, parseFault } from './fault-spec.ts';
import { fraction } from './word-overlap.ts';

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
export function withFaults(gate: Gate, chances: readonly ChanceFault[], seed: number): Gate {
  let draws = 0;
  const random = (): number => fraction(`${seed}:${draws++}`);
  const seen = new LRUCache<string, number>({ maxSize: MAX_NAMES, sizeCalculation: () => 1 });
  const asked = ({ request }: Exchange): FaultSpec | undefined => {
    const header = request.headers[FAULT_HEADER];
    if (header === undefined) return undefined;
    const parsed = parseFault(String(header));
    if ('problem' in parsed) throw new DomainError('MALFORMED_REQUEST', `${FAULT_HEADER}: ${parsed.problem}`);
    const spec = parsed.value;
    if (spec.first === undefined) return spec;
    const count = (seen.get(spec.first.id) ?? 0) + 1;
    seen.set(spec.first.id, count);
    return count <= spec.first.count ? spec : undefined;
  };
  return async (exchange, procedure) => {
    await gate(exchange, procedure);
    // Every fault draws for every request, so that a change of one's rate does not change when the others strike.
    const struck = chances.filter(({ rate }) => random() < rate);
    const spec = asked(exchange) ?? struck[0]?.spec;
    if (spec !== undefined) await strike(exchange, spec);
  };
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
