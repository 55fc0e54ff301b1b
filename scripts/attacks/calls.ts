/** Plain requests from a chosen address: what an attacker and others ask beside the attack itself. */
import { Agent, request } from 'node:http';

/** A request. `from`: the local address, by default 127.0.0.1. */
export interface Ask {
  readonly method?: string;
  readonly path?: string;
  readonly key?: string;
  readonly type?: string;
  readonly body?: string | Uint8Array;
  readonly from?: string;
  readonly agent?: Agent | false;
}

/** What came back. */
export interface Answer {
  /** 0 without an answer. */
  readonly status: number;
  /** Milliseconds of the whole request. */
  readonly ms: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Sends one request, by default a POST if it has a body. Never rejects. */
export function ask(
  port: number,
  { method, path = '/v1/decisions', key, type, body, from, agent }: Ask,
): Promise<Answer> {
  const began = performance.now();
  return new Promise((resolve) => {
    const end = (status: number, headers: Answer['headers'] = {}, text = ''): void =>
      resolve({ status, ms: performance.now() - began, text, headers });
    const sent = request(
      {
        port,
        path,
        host: '127.0.0.1',
        localAddress: from ?? '127.0.0.1',
        agent: agent ?? false,
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        timeout: 12_000,
        headers: {
          ...(body === undefined
            ? {}
            : { 'content-type': type ?? 'application/json', 'content-length': Buffer.byteLength(body) }),
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        },
      },
      (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('error', () => end(0));
        answer.on('end', () => end(answer.statusCode ?? 0, answer.headers, Buffer.concat(parts).toString()));
      },
    );
    sent.on('timeout', () => sent.destroy()).on('error', () => end(0));
    sent.end(body);
  });
}

/** An agent with one connection that is kept open. */
export const keptAgent = (): Agent => new Agent({ keepAlive: true, maxSockets: 1 });

/** Stores a catalog whose reading gives an answer of about 1 MiB. */
export async function storeLargeCatalog(port: number, key: string): Promise<void> {
  const choices = Array.from({ length: 42 }, (_, index) => `${index}${'x'.repeat(24_000)}`);
  const body = JSON.stringify({ id: 'large', model: 'minilm-l6', choices });
  const { status, text } = await ask(port, { path: '/v1/catalogs', key, body });
  if (status !== 201) throw new Error(`the catalog was not made: ${status} ${text}`);
}

/** Waits for so many milliseconds. */
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls `work` again and again until the time is over. */
export async function until(seconds: number, work: () => Promise<unknown>): Promise<void> {
  const ends = performance.now() + seconds * 1000;
  while (performance.now() < ends) await work();
}
