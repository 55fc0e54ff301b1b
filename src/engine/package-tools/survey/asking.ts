/**
 * Requests to an HTTP server of which little is known yet. A refusal is an answer here; a server that is away, or
 * refuses the token, is an error that says what to do about it.
 */
import { CallFailed, reasonOf } from '../../families/remote/call-failed.ts';
import { failureOf } from '../../families/remote/http/answers.ts';
import { createHttpClient, type HttpAnswer, type HttpRequest } from '../../families/remote/http/http-client.ts';
import { parseJson } from '../../families/remote/http/parse-json.ts';
import { readCredentials, readToken, type ServerOptions } from '../../families/remote/server-options.ts';

/** What became of a request. */
export type Reply =
  | { readonly kind: 'answered'; readonly body: unknown }
  /** `failure` has the server's own words in its details. */
  | { readonly kind: 'refused'; readonly status: number; readonly failure: CallFailed }
  /** It took longer than `PATIENCE`. */
  | { readonly kind: 'slow' };

/** Asks a server. Rejects with Error if it is away, stays busy, or refuses the token. */
export interface Asking {
  readonly address: string;
  /** The JSON at a path; undefined if there is none. */
  get(path: string): Promise<unknown>;
  post(path: string, body: string): Promise<Reply>;
  close(): void;
}

/** Milliseconds for an answer, and the most bytes of one. */
const PATIENCE = 30_000;
const ANSWER_BYTES = 64 * 2 ** 20;
const [UNAUTHORISED, FORBIDDEN, TOO_MANY, UNAVAILABLE] = [401, 403, 429, 503];
/** How often a server is asked while it loads its model or is busy, and the milliseconds between. */
const ATTEMPTS = 5;
const PAUSE = 1000;

/** Prepares to ask a server. Rejects with Error if its certificates or its token cannot be read. */
export async function createAsking(server: ServerOptions): Promise<Asking> {
  const { address } = server;
  const client = createHttpClient({
    address,
    tls: await readCredentials(server.tls, '.'),
    token: await readToken(server.token, '.'),
    requests: 1,
    answerBytes: ANSWER_BYTES,
  });

  const once = async (request: HttpRequest): Promise<HttpAnswer | undefined> => {
    try {
      return await client.exchange(request, { signal: new AbortController().signal, within: PATIENCE });
    } catch (error) {
      if (error instanceof CallFailed && error.outcome === 'timed_out') return undefined;
      throw new Error(
        `the server at ${address} cannot be asked: ${reasonOf(error)}. Is it running, and is that its address? ` +
          (server.tls === undefined
            ? 'Does it want https?'
            : 'Does its certificate need --ca, or does it not speak https?'),
      );
    }
  };

  const exchange = async (request: HttpRequest): Promise<HttpAnswer | undefined> => {
    for (let attempt = 1; ; attempt++) {
      const answer = await once(request);
      const busy = answer?.status === TOO_MANY || answer?.status === UNAVAILABLE;
      if (!busy) return answer;
      if (attempt === ATTEMPTS) {
        throw new Error(
          `the server at ${address} is busy or still starting: ${reasonOf(failureOf(answer, request.path))}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  };

  return {
    address,
    async get(path) {
      const answer = await exchange({ method: 'GET', path });
      if (answer?.status !== 200) return undefined;
      try {
        return parseJson(answer.body);
      } catch {
        return undefined;
      }
    },
    async post(path, body) {
      const answer = await exchange({ method: 'POST', path, body });
      if (answer === undefined) return { kind: 'slow' };
      const { status } = answer;
      if (status === 200) return { kind: 'answered', body: parseJson(answer.body) };
      const failure = failureOf(answer, path);
      if (status !== UNAUTHORISED && status !== FORBIDDEN) return { kind: 'refused', status, failure };
      const hint =
        server.token === undefined
          ? '--token-file or --token-env says where one is'
          : 'see what --token-file or --token-env names';
      throw new Error(`the server at ${address} refused: ${failure.message}; ${hint}`);
    },
    close: () => client.close(),
  };
}
