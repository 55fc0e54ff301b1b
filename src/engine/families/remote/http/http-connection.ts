/**
 * The connection to an HTTP server that a package names: JSON in, JSON out, to one path. Neither the server nor the
 * environment has a say in it: no redirects are followed, no proxies are used, and answers are bounded in bytes, time
 * and depth.
 */
import { reasonOf } from '../call-failed.ts';
import type { InferenceTerms } from '../calls.ts';
import type { Connection } from '../remote-server.ts';
import { type HttpServerOptions, readCredentials, readToken } from '../server-options.ts';
import { failureOf, readinessOf } from './answers.ts';
import { createHttpClient } from './http-client.ts';
import { parseJson, usageIn } from './parse-json.ts';

/** A connection that JSON is sent over. */
export interface HttpConnection extends Connection {
  /**
   * Sends a body to the server's path and reads the answer. `body` is JSON text, which the dialect writes itself: the
   * order of an object's fields may matter. Rejects with CallFailed.
   */
  post(body: string, terms: InferenceTerms): Promise<unknown>;
}

/** What a connection is made of. */
export interface HttpConnectionOptions {
  readonly server: HttpServerOptions;
  readonly bounds: {
    /** Requests that may be in flight at one time. */
    readonly requests: number;
    /** The most bytes of an answer. */
    readonly messageBytes: number;
  };
}

/** How long a server may take to say whether it is ready, milliseconds. */
const PATIENCE = 2000;

/** Connects with the first call. Rejects with an Error that names the TLS file or token that cannot be used. */
export async function openHttpConnection(
  { server, bounds }: HttpConnectionOptions,
  folder: string,
): Promise<HttpConnection> {
  const { address, path, health, tokenHeader } = server;
  const token = await readToken(server.token, folder);
  const client = createHttpClient({
    address,
    tls: await readCredentials(server.tls, folder),
    token,
    tokenHeader,
    requests: bounds.requests,
    answerBytes: bounds.messageBytes,
  });

  return {
    async readinessProblem() {
      const place = `the inference server at ${address}`;
      try {
        const terms = { signal: new AbortController().signal, within: PATIENCE };
        const problem = readinessOf(await client.exchange({ method: 'GET', path: health }, terms));
        return problem && `${place} ${problem} (GET ${health})`;
      } catch (error) {
        return `${place} cannot be asked: ${reasonOf(error)}`;
      }
    },
    // HTTP servers say too little about their models, and each says it in a different place: the canary has to tell.
    modelProblems: async () => [],
    async post(body, terms) {
      const answer = await client.exchange({ method: 'POST', path, body }, terms);
      if (answer.status !== 200) throw failureOf(answer, path, token);
      const said = parseJson(answer.body);
      terms.used?.(usageIn(said));
      return said;
    },
    close: () => client.close(),
  };
}
