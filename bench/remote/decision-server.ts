/**
 * A decision server for benchmarks. It speaks `/v1/systemone`, takes a bounded number of choices, and has a model of
 * another Umpire decide. It counts what it is asked, and hangs on request.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The model that decides for the server. */
export interface Decider {
  /** The address of its service, without a slash at the end. */
  readonly url: string;
  readonly model: string;
}

/** What the server has been asked so far. */
export interface Asked {
  requests: number;
  choices: number;
  tokens: number;
  /** The choices of the last request. */
  last: readonly string[];
}

/** A server that listens. */
export interface DecisionServer {
  readonly address: string;
  readonly asked: Asked;
  /** Makes it answer nothing, not even questions of its health, or go on and answer what has waited. */
  hang(hangs: boolean): void;
  stop(): Promise<void>;
}

interface Body {
  readonly model: string;
  readonly state: string;
  readonly questions: Readonly<
    Record<string, { readonly instructions: string; readonly criteria: Readonly<Record<string, null>> }>
  >;
}

/** Starts a server that takes at most `cap` choices. `tokensOf`: the number of a text's tokens. */
export async function startDecisionServer(
  decider: Decider,
  cap: number,
  tokensOf: (text: string) => number,
): Promise<DecisionServer> {
  const asked: Asked = { requests: 0, choices: 0, tokens: 0, last: [] };
  let going = Promise.withResolvers<void>();
  going.resolve();
  let hanging = false;

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    await going.promise;
    if (request.url === '/v1/models') return send(response, 200, { models: [{ name: decider.model }] });
    if (request.url !== '/v1/systemone') return send(response, 404, { detail: 'Not Found' });
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { state, questions } = JSON.parse(Buffer.concat(chunks).toString()) as Body;
    const [[name, question] = []] = Object.entries(questions);
    if (name === undefined || question === undefined) return send(response, 422, { detail: 'no question' });
    const { instructions, criteria } = question;
    const choices = Object.keys(criteria);
    if (choices.length > cap) return send(response, 422, { detail: `at most ${cap} options, not ${choices.length}` });
    asked.requests++;
    asked.choices += choices.length;
    asked.tokens += [state, instructions, ...choices].reduce((sum, text) => sum + tokensOf(text), 0);
    asked.last = choices;
    const decided = await fetch(`${decider.url}/v1/decisions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: decider.model, input: state, instruction: instructions, choices }),
    });
    if (!decided.ok) {
      await decided.arrayBuffer();
      return send(response, decided.status === 400 ? 413 : 503, { detail: `the decider answered ${decided.status}` });
    }
    const { output } = (await decided.json()) as { readonly output: Readonly<Record<string, unknown>> };
    const { choice, confidence, probabilities } = output;
    const answer = { type: 'choice', choice, confidence, probabilities };
    send(response, 200, { model: decider.model, answers: { [name]: answer }, usage: { input_tokens: 0 } });
  };

  const server = createServer((request, response) => {
    request.on('error', () => {});
    handle(request, response).catch((error: unknown) => send(response, 500, { detail: String(error) }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    hang(hangs) {
      if (hangs === hanging) return;
      hanging = hangs;
      if (hangs) going = Promise.withResolvers<void>();
      else going.resolve();
    },
    async stop() {
      going.resolve();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  if (response.destroyed || response.headersSent) return;
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}
