/**
 * A neighbour at another address, in a thread of its own, so that the attack's own work does not count as the
 * neighbour's waiting. It asks for decisions over a kept connection and over new ones, and for liveness on the port of
 * callers and on the operator's.
 */
import { Agent, request } from 'node:http';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Target } from './target.ts';

/** How one kind of request fared. Milliseconds. */
export interface Fare {
  readonly answered: number;
  readonly asked: number;
  readonly p50: number;
  readonly p99: number;
  /** The longest time without an answer. */
  readonly gap: number;
}

/** The kinds of requests that a neighbour makes. */
export const KINDS = ['decision', 'new connection', 'live', 'probe'] as const;
/** How all kinds of requests fared. */
export type Fares = Readonly<Record<(typeof KINDS)[number], Fare>>;

/** Milliseconds between requests of one kind. */
const INTERVAL = 50;
/** Milliseconds after which a request counts as not answered. */
const PATIENCE = 10_000;

interface Sample {
  readonly kind: (typeof KINDS)[number];
  readonly ms: number;
  readonly ok: boolean;
  /** When the request was over, by `now()`. */
  readonly at: number;
}

/** A neighbour that keeps asking. */
export interface Neighbour {
  /** How requests have fared since the last call. */
  read(): Fares;
  stop(): Promise<unknown>;
}

/** Starts a neighbour, which asks until `stop`. */
export function startNeighbour({ port, metricsPort }: Pick<Target, 'port' | 'metricsPort'>): Neighbour {
  const worker = new Worker(new URL(import.meta.url), { workerData: { port, metricsPort } });
  let samples: Sample[] = [];
  let since = now();
  worker.on('message', (sample: Sample) => samples.push(sample));
  return {
    read() {
      const ends = now();
      const taken = samples;
      const begun = since;
      samples = [];
      since = ends;
      const fare = (of: string): Fare =>
        fareOf(
          taken.filter(({ kind }) => kind === of),
          begun,
          ends,
        );
      return Object.fromEntries(KINDS.map((kind) => [kind, fare(kind)])) as Record<Sample['kind'], Fare>;
    },
    stop: () => worker.terminate(),
  };
}

/** Milliseconds on a clock that all threads of this process share. */
const now = (): number => performance.timeOrigin + performance.now();

/**
 * The fare of samples between `begun` and `ends`, which both count for the gap: a caller who was answered once and then
 * no more has a long one.
 */
function fareOf(samples: readonly Sample[], begun: number, ends: number): Fare {
  const good = samples.filter(({ ok }) => ok);
  const times = good.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const at = (share: number): number =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN;
  const answers = [begun, ...good.map(({ at }) => at), ends];
  const gap = Math.max(...answers.slice(1).map((at, index) => at - (answers[index] as number)));
  return { answered: good.length, asked: samples.length, p50: at(0.5), p99: at(0.99), gap };
}

const BODY = JSON.stringify({
  model: 'minilm-l6',
  input: 'I was charged twice for my order',
  instruction: 'Which team should handle this?',
  choices: ['billing', 'shipping', 'technical support'],
});

/** Asks in a loop: the next request INTERVAL milliseconds after the last was answered or given up. */
async function ask(kind: Sample['kind'], port: number, path: string, agent: Agent | false): Promise<never> {
  const body = path === '/v1/decisions' ? BODY : undefined;
  for (;;) {
    const began = now();
    const ok = await new Promise<boolean>((resolve) => {
      const sent = request(
        {
          port,
          path,
          host: '127.0.0.1',
          localAddress: '127.0.0.2',
          method: body === undefined ? 'GET' : 'POST',
          headers: body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length },
          agent,
          timeout: PATIENCE,
        },
        (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode === 200));
          response.on('error', () => resolve(false));
        },
      );
      sent.on('timeout', () => sent.destroy());
      sent.on('error', () => resolve(false));
      sent.end(body);
    });
    const at = now();
    parentPort?.postMessage({ kind, ok, ms: at - began, at } satisfies Sample);
    await new Promise((resolve) => setTimeout(resolve, INTERVAL));
  }
}

if (!isMainThread) {
  const { port, metricsPort } = workerData as { port: number; metricsPort: number };
  void ask('decision', port, '/v1/decisions', new Agent({ keepAlive: true }));
  void ask('new connection', port, '/v1/decisions', false);
  void ask('live', port, '/health/live', false);
  void ask('probe', metricsPort, '/health/live', false);
}
