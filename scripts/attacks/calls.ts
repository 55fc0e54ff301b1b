/** Plain requests from a chosen address: what an attacker and others ask beside the attack itself. */
import { Agent, request } from 'node:http';
import { connect } from 'node:net';

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

/** The body of a decision as JSON; `fields` replace or complete its own. */
export const decisionText = (fields: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify({ model: 'minilm-l6', input: 'x', instruction: 'i', choices: ['a', 'b'], ...fields });

/**
 * Sends chunks of bytes, 100 ms apart, and resolves to all that comes back until `wait` milliseconds after the last, or
 * until the connection is closed.
 */
export function sendBytes(port: number, chunks: readonly (string | Uint8Array)[], wait = 1000): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.1', noDelay: true });
    let text = '';
    const timer = setTimeout(() => socket.destroy(), wait + 100 * chunks.length);
    socket.on('data', (part) => {
      text += part.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(text);
    });
    socket.on('connect', async () => {
      for (const chunk of chunks) {
        if (!socket.destroyed) socket.write(chunk);
        await new Promise((next) => setTimeout(next, 100));
      }
    });
  });
}
