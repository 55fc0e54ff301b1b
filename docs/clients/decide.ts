/**
 * A decision over gRPC with grpc-js, from the protos, and what an error says:
 *
 *     node_modules/.bin/node docs/clients/decide.ts HOST:PORT [CA_FILE]
 *
 * In a project of your own: copy this file and the folder proto/, `npm pkg set type=module` (it is an ES module, and npm makes a package a CommonJS one;
 * or name the copy decide.mts), `npm install @grpc/grpc-js @grpc/proto-loader protobufjs`, and run it there, where proto/ is, with Node 22.18 or later, or
 * with `npx tsx`. With a CA file the connection is TLS, with UMPIRE_KEY in the environment the call carries the key.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceClientConstructor,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import protobuf from 'protobufjs';

const [address = 'localhost:8080', caFile] = process.argv.slice(2);
const PROTOS = 'proto';

const definition = loadSync('umpire/v1/decision_service.proto', {
  includeDirs: [PROTOS],
  keepCase: true,
  defaults: true,
});
const { umpire } = loadPackageDefinition(definition) as unknown as {
  umpire: { v1: { DecisionService: ServiceClientConstructor } };
};

const client = new umpire.v1.DecisionService(
  address,
  caFile === undefined ? credentials.createInsecure() : credentials.createSsl(readFileSync(caFile)),
  {
    // A decision stores nothing, so it may be sent again. The server's pushback says when, or that it is no use.
    'grpc.service_config': JSON.stringify({
      loadBalancingConfig: [{ round_robin: {} }],
      methodConfig: [
        {
          name: [{ service: 'umpire.v1.DecisionService' }],
          retryPolicy: {
            maxAttempts: 4,
            initialBackoff: '0.1s',
            maxBackoff: '2s',
            backoffMultiplier: 2,
            retryableStatusCodes: ['UNAVAILABLE', 'RESOURCE_EXHAUSTED'],
          },
        },
      ],
    }),
  },
);

/** The reason of an error, such as AUTHENTICATION_REQUIRED, and the field at fault: grpc-js hands the details out as bytes of google.rpc.Status. */
function errorInfoOf(
  error: ServiceError,
): { readonly reason: string; readonly metadata: Record<string, string> } | undefined {
  const [bytes] = error.metadata.get('grpc-status-details-bin');
  // An error that no server sent, such as a deadline that passed here, has none.
  if (!Buffer.isBuffer(bytes)) return undefined;
  const root = new protobuf.Root();
  root.resolvePath = (_, target) => join(PROTOS, target);
  root.loadSync(['google/rpc/status.proto', 'google/rpc/error_details.proto']);
  const { details } = root.lookupType('google.rpc.Status').decode(bytes) as unknown as {
    details: readonly { type_url: string; value: Uint8Array }[];
  };
  const info = details.find(({ type_url: name }) => name === 'type.googleapis.com/google.rpc.ErrorInfo');
  return (
    info && (root.lookupType('google.rpc.ErrorInfo').decode(info.value) as unknown as ReturnType<typeof errorInfoOf>)
  );
}

const metadata = new Metadata();
if (process.env.UMPIRE_KEY) metadata.set('authorization', `Bearer ${process.env.UMPIRE_KEY}`);

const request = {
  model: 'umpire-mini',
  input: 'I was charged twice for my order',
  instruction: 'Which team should handle this?',
  choices: [
    'billing: invoices, charges, refunds',
    'shipping: parcels and delivery',
    'technical support: errors and crashes',
  ],
};

// By the id of the request the operator finds it. It is in the initial metadata, which is the only metadata of a refusal that has no message: grpc-js
// hands that out with the error.
let requestId: unknown = '';
const call = client.CreateDecision?.(
  request,
  metadata,
  { deadline: Date.now() + 5000 },
  (
    error: ServiceError | null,
    response?: { decision: { model: string; output: { choice: string; confidence: number } } },
  ) => {
    client.close();
    if (error !== null || response === undefined) {
      const info = error === null ? undefined : errorInfoOf(error);
      const [id = requestId] = error?.metadata.get('x-request-id') ?? [];
      process.stderr.write(
        `${status[error?.code ?? status.UNKNOWN]} ${info?.reason ?? ''} ${info?.metadata.param ?? ''} ${id}: ${error?.details}\n`,
      );
      process.exitCode = 1;
      return;
    }
    const { model, output } = response.decision;
    process.stdout.write(`${output.choice} ${output.confidence} ${model}\n`);
  },
);
call?.on('metadata', (initial: Metadata) => {
  [requestId = ''] = initial.get('x-request-id');
});
