/** A caller of a service behind TLS, over HTTP/1.1 on connections that are kept. */
import { Agent } from 'node:https';
import type { Answer } from './answers.ts';
import { type Call, send } from './http.ts';

export interface TlsCaller {
  /** Sends a request; a body goes as JSON unless the headers say otherwise. */
  send(call: Omit<Call, 'host'>): Promise<Answer>;
  close(): void;
}

/** One for a port of 127.0.0.1 whose certificate is trusted. */
export function openTls(port: number, trusted: string): TlsCaller {
  const agent = new Agent({ keepAlive: true, ca: trusted });
  return {
    send: (call) => send(port, call, agent),
    close: () => agent.destroy(),
  };
}
