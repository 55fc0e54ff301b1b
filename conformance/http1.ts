/** Sends requests by HTTP/1.1, over a few connections that are kept open. */
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Answer } from './answer.ts';
import {
  type Call,
  createGatherer,
  headersOf,
  methodOf,
  pathOf,
  type Send,
  Silence,
  type Target,
  tlsOf,
} from './call.ts';

/** Connections at most: more than the requests that any check makes at a time. */
const CONNECTIONS = 8;

/** A function that sends requests, and one that closes its connections. */
export function createHttp1(target: Target): { readonly send: Send; close(): void } {
  const { url, timeout } = target;
  const secure = url.protocol === 'https:';
  const pooled = { keepAlive: true, maxSockets: CONNECTIONS };
  const agent = secure ? new HttpsAgent({ ...pooled, ...tlsOf(target) }) : new HttpAgent(pooled);
  const address = { agent, host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port };

  const send = (call: Call, again = true): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const line = { path: pathOf(url, call), method: methodOf(call), headers: headersOf(call) };
      const sent = (secure ? httpsRequest : httpRequest)({ ...address, ...line }, (response) => {
        const gathered = createGatherer((error) => response.destroy(error));
        response.on('data', gathered.add);
        response.on('error', reject);
        response.on('end', () => {
          const { statusCode = 0, headers, trailers } = response;
          resolve({ status: statusCode, headers, trailers, body: gathered.bytes() });
        });
      });
      const timer = setTimeout(() => sent.destroy(new Silence(timeout)), timeout);
      sent.on('close', () => clearTimeout(timer));
      sent.on('error', (error: NodeJS.ErrnoException) => {
        // The other side closed the kept connection just then, so it has not seen the request.
        if (again && sent.reusedSocket && error.code === 'ECONNRESET') resolve(send(call, false));
        else reject(error);
      });
      sent.end(call.body);
    });

  return { send: (call) => send(call), close: () => agent.destroy() };
}
