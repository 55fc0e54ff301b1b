/**
 * A neighbour in another address, in a thread of its own so that the attack's work does not count as his waiting: decisions on a connection that is kept and
 * on new ones, and probes of liveness on the callers' port and on the operator's.
 */
import { Agent, request } from 'node:http';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/** How one kind of request fared. Milliseconds. */
export interface Fare {
  readonly answered: number;
  readonly asked: number;
  readonly p50: number;
  readonly p99: number;
  /** The longest time without an answer. */
  readonly gap: number;
}

export const KINDS = ['decision', 'new connection', 'live', 'probe'] as const;
export type Fares = Readonly<Record<(typeof KINDS)[number], Fare>>;

/** Milliseconds between requests of one kind, and those after which one counts as not answered. */
const INTERVAL = 100;
const PATIENCE = 10_000;

interface Sample {
  readonly kind: (typeof KINDS)[number];
  readonly ms: number;
  readonly ok: boolean;
  readonly at: number;
}

/** Watches until `stop`; `read` takes what was seen since the last time. */
export function startNeighbour(ports: { readonly port: number; readonly metricsPort: number }): {
  read(): Fares;
  stop(): Promise<unknown>;
} {
  const worker = new Worker(new URL(import.meta.url), {
    workerData: { port: ports.port, metricsPort: ports.metricsPort },
  });
  let samples: Sample[] = [];
  let since = performance.now();
  worker.on('message', (sample: Sample) => samples.push(sample));
  return {
    read() {
      const now = performance.now();
      const taken = samples;
      const begun = since;
      samples = [];
      since = now;
      return Object.fromEntries(
        KINDS.map((kind) => [
          kind,
          fareOf(
            taken.filter((sample) => sample.kind === kind),
            now - begun,
          ),
        ]),
      ) as unknown as Fares;
    },
    stop: () => worker.terminate(),
  };
}

function fareOf(samples: readonly Sample[], span: number): Fare {
  const good = samples.filter(({ ok }) => ok);
  const times = good.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const at = (share: number): number =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN;
  let gap = good.length === 0 ? span : 0;
  for (let index = 1; index < good.length; index += 1)
    gap = Math.max(gap, (good[index] as Sample).at - (good[index - 1] as Sample).at);
  return { answered: good.length, asked: samples.length, p50: at(0.5), p99: at(0.99), gap };
}

const BODY = JSON.stringify({
  model: 'minilm-l6',
  input: 'I was charged twice for my order',
  instruction: 'Which team should handle this?',
  choices: ['billing', 'shipping', 'technical support'],
});

/** Asks in a loop: the next a moment after the last was answered or given up. */
async function ask(kind: Sample['kind'], port: number, path: string, agent: Agent | false): Promise<never> {
  const body = path === '/v1/decisions' ? BODY : undefined;
  for (;;) {
    const began = performance.now();
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
    const at = performance.now();
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
