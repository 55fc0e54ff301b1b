/** A connection to a server of this protocol, as a package names it. */
import type { Connection } from '../remote/remote-server.ts';
import { readCredentials, readToken } from '../remote/server-options.ts';
import { createInferenceClient, type InferenceClient, modelProblems, readinessProblem } from './client.ts';
import type { OpenInferenceOptions } from './options.ts';

/** A connection that rows are sent over. */
export interface InferenceConnection extends Connection, Pick<InferenceClient, 'infer'> {}

/** The least bound of a response, bytes, whatever a package allows for rows. */
const MIN_MESSAGE_BYTES = 2 ** 20;

/** Connects with the first call. Rejects with an Error that names the TLS file or token that cannot be used. */
export async function openConnection(options: OpenInferenceOptions, folder: string): Promise<InferenceConnection> {
  const { server, bounds } = options;
  const client = createInferenceClient({
    address: server.address,
    tls: await readCredentials(server.tls, folder),
    token: await readToken(server.token, folder),
    messageBytes: Math.max(bounds.messageBytes, MIN_MESSAGE_BYTES),
  });
  return {
    readinessProblem: () => readinessProblem(client, options),
    modelProblems: () => modelProblems(client, options),
    infer: (request, terms) => client.infer(request, terms),
    close: () => client.close(),
  };
}
