/**
 * A decision over gRPC with grpc-js, from the protos: `node docs/clients/decide.ts HOST:PORT [CA_FILE]`. With a CA file the connection is TLS,
 * with API_KEY in the environment the call carries the key.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { credentials, loadPackageDefinition, Metadata, type ServiceClientConstructor } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const [address = 'localhost:8080', caFile] = process.argv.slice(2);

const definition = loadSync('umpire/v1/decision_service.proto', {
  includeDirs: [fileURLToPath(new URL('../../proto', import.meta.url))],
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

const metadata = new Metadata();
if (process.env.API_KEY) metadata.set('authorization', `Bearer ${process.env.API_KEY}`);

const request = {
  model: 'minilm-l6',
  input: 'I was charged twice for my order',
  instruction: 'Which team should handle this?',
  choices: ['billing', 'shipping', 'technical support'],
};

client.CreateDecision?.(
  request,
  metadata,
  { deadline: Date.now() + 5000 },
  (error: Error | null, response?: { decision: { model: string; output: { choice: string; confidence: number } } }) => {
    client.close();
    if (error !== null || response === undefined) throw error;
    const { model, output } = response.decision;
    process.stdout.write(`${output.choice} ${output.confidence} ${model}\n`);
  },
);
