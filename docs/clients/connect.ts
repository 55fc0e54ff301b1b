/**
 * A decision over gRPC with @connectrpc/connect, from generated code, and what an error says. In a project of your own: copy this file, buf.gen.yaml
 * beside it and the folder proto/, `npm pkg set type=module` (it is an ES module, and npm makes a package a CommonJS one), install what buf.gen.yaml
 * names, run `npx buf generate`, then, with Node 22.18 or later or with `npx tsx`,
 *
 *     node connect.ts BASE_URL
 *
 * With UMPIRE_KEY in the environment the call carries the key.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { ErrorInfoSchema, RetryInfoSchema } from './gen/google/rpc/error_details_pb.ts';
import {
  type CreateDecisionRequestSchema,
  type Decision,
  DecisionService,
} from './gen/umpire/v1/decision_service_pb.ts';

const [baseUrl = 'http://localhost:8080'] = process.argv.slice(2);
// One transport for the whole process: it keeps its connection.
const client = createClient(DecisionService, createGrpcTransport({ baseUrl }));
const headers: Record<string, string> = process.env.UMPIRE_KEY
  ? { authorization: `Bearer ${process.env.UMPIRE_KEY}` }
  : {};

/** Milliseconds for all attempts together, and how many there are at most. Connect does not retry by itself. */
const TIMEOUT = 5000;
const ATTEMPTS = 4;

/** Milliseconds to wait before the next attempt; undefined where none is any use. */
function pause(error: ConnectError, attempt: number): number | undefined {
  if (attempt === ATTEMPTS || ![Code.Unavailable, Code.ResourceExhausted].includes(error.code)) return undefined;
  const [retry] = error.findDetails(RetryInfoSchema);
  if (retry?.retryDelay !== undefined) return durationMs(retry.retryDelay) + Math.random() * 100;
  // The service would have said when; -1 says that it is no use.
  if (error.metadata.get('grpc-retry-pushback-ms') === '-1') return undefined;
  return Math.random() * Math.min(2000, 100 * 2 ** attempt);
}

/** Decides within TIMEOUT, all attempts together. @throws ConnectError */
async function decide(request: MessageInitShape<typeof CreateDecisionRequestSchema>): Promise<Decision | undefined> {
  const deadline = Date.now() + TIMEOUT;
  for (let attempt = 1; ; attempt++) {
    try {
      // Connect takes 0 for "no deadline".
      const timeoutMs = Math.max(1, deadline - Date.now());
      return (await client.createDecision(request, { headers, timeoutMs })).decision;
    } catch (thrown) {
      const error = ConnectError.from(thrown);
      const wait = pause(error, attempt);
      // A wait that ends behind the deadline is not worth beginning.
      if (wait === undefined || Date.now() + wait >= deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

try {
  const decision = await decide({
    model: 'umpire-mini',
    input: 'I was charged twice for my order',
    instruction: 'Which team should handle this?',
    choices: [
      'billing: invoices, charges, refunds',
      'shipping: parcels and delivery',
      'technical support: errors and crashes',
    ],
  });
  process.stdout.write(`${decision?.output?.choice} ${decision?.output?.confidence} ${decision?.model}\n`);
} catch (thrown) {
  const error = ConnectError.from(thrown);
  // A deadline that passed here, before the service answered, has neither details nor the id of a request.
  const [info] = error.findDetails(ErrorInfoSchema);
  const id = error.metadata.get('x-request-id') ?? '';
  process.stderr.write(
    `${Code[error.code]} ${info?.reason ?? ''} ${info?.metadata.param ?? ''} ${id}: ${error.rawMessage}\n`,
  );
  process.exitCode = 1;
}
