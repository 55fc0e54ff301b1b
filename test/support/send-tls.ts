/** A caller of a service behind TLS, over HTTP/1.1 on connections that are kept. */
import { Agent, request } from 'node:https';
import type { Answer } from './answers.ts';
import type { Call } from './http.ts';

export interface TlsCaller {
  /** Sends a request; a body goes as JSON unless the headers say otherwise. */
  send(call: Omit<Call, 'host'>): Promise<Answer>;
  close(): void;
}

/** One for a port of 127.0.0.1 whose certificate is trusted. */
export function openTls(port: number, trusted: string): TlsCaller {
  const agent = new Agent({ keepAlive: true, ca: trusted });
  return {
    send: ({ method, path = '/v1/decisions', headers = {}, body, localAddress }) =>
      new Promise((resolve, reject) => {
        const sent = request(
          {
            agent,
            host: '127.0.0.1',
            port,
            path,
            method: method ?? (body === undefined ? 'GET' : 'POST'),
            ...(localAddress === undefined ? {} : { localAddress }),
            headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
          },
          (response) => {
            const chunks: Buffer[] = [];
            response.on('data', (chunk: Buffer) => chunks.push(chunk));
            response.on('error', reject);
            response.on('end', () =>
              resolve({
                status: response.statusCode ?? 0,
                headers: response.headers,
                text: Buffer.concat(chunks).toString(),
              }),
            );
          },
        );
        sent.on('error', reject);
        sent.end(body);
      }),
    close: () => agent.destroy(),
  };
}
