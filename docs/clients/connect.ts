/**
 * A decision over gRPC with @connectrpc/connect, from generated code, and what an error says. In a project of your own: copy this file, buf.gen.yaml
 * beside it and the folder proto/, install what buf.gen.yaml names, run `npx buf generate`, then, with Node 22.18 or later or with `npx tsx`,
 *
 *     node connect.ts BASE_URL
 *
 * With API_KEY in the environment the call carries the key.
 */
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { ErrorInfoSchema, RetryInfoSchema } from './gen/google/rpc/error_details_pb.ts';
import { DecisionService } from './gen/umpire/v1/decision_service_pb.ts';

const [baseUrl = 'http://localhost:8080'] = process.argv.slice(2);
// One transport for the whole process: it keeps its connection.
const client = createClient(DecisionService, createGrpcTransport({ baseUrl }));
const headers: Record<string, string> = process.env.API_KEY ? { authorization: `Bearer ${process.env.API_KEY}` } : {};

const ATTEMPTS = 4;

/** Milliseconds until the next attempt; undefined where none is any use. Connect does not retry by itself. */
function pause(error: ConnectError, attempt: number): number | undefined {
  if (attempt === ATTEMPTS || ![Code.Unavailable, Code.ResourceExhausted].includes(error.code)) return undefined;
  const [retry] = error.findDetails(RetryInfoSchema);
  if (retry?.retryDelay !== undefined) return Number(retry.retryDelay.seconds) * 1000 + Math.random() * 100;
  // The service would have said when; -1 says that it is no use.
  if (error.metadata.get('grpc-retry-pushback-ms') === '-1') return undefined;
  return Math.random() * Math.min(2000, 100 * 2 ** attempt);
}

async function decide(attempt = 1): Promise<void> {
  try {
    const { decision } = await client.createDecision(
      {
        model: 'minilm-l6',
        input: 'I was charged twice for my order',
        instruction: 'Which team should handle this?',
        choices: ['billing', 'shipping', 'technical support'],
      },
      { headers, timeoutMs: 5000 },
    );
    process.stdout.write(`${decision?.output?.choice} ${decision?.output?.confidence} ${decision?.model}\n`);
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    const wait = pause(error, attempt);
    if (wait !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      return decide(attempt + 1);
    }
    // A deadline that passed here, before the service answered, has no details.
    const [info] = error.findDetails(ErrorInfoSchema);
    process.stderr.write(
      `${Code[error.code]} ${info?.reason ?? ''} ${info?.metadata.param ?? ''}: ${error.rawMessage}\n`,
    );
    process.exitCode = 1;
  }
}

await decide();
