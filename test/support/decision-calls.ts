/** Decisions as callers that keep on calling make them, over REST and gRPC, and what counts as a fault. */
import type { Client } from '@grpc/grpc-js';
import { type Answer, json } from './answers.ts';
import { callGrpc, errorDetails } from './grpc.ts';

/** A request's body; `input` differs from turn to turn, and any model that reads words knows the answer. */
export const decisionOf = (turn: number) => ({
  model: 'minilm-l6',
  input: `billing: order ${turn} was charged twice`,
  instruction: 'which team',
  choices: ['billing', 'weather'],
});

/** Undefined for a decision that is as it should be, else what is wrong with it. */
export function restFault(answer: Answer): string | undefined {
  if (answer.status !== 200) {
    const { error } = json(answer) as { error?: { code?: string } };
    // Only Umpire gives requests an id: without one the answer is the proxy's own.
    return `${answer.status} ${answer.headers['x-request-id'] === undefined ? 'by the proxy' : error?.code}`;
  }
  return (json(answer) as { output?: { choice?: string } }).output?.choice === 'billing' ? undefined : 'wrong choice';
}

/** The same over gRPC. */
export async function grpcFault(
  decisions: Client,
  turn: number,
  metadata: Record<string, string>,
): Promise<string | undefined> {
  const { response, error, trailers } = await callGrpc<{ decision: { output: { choice: string } } }>(
    decisions,
    'CreateDecision',
    decisionOf(turn),
    { metadata, deadline: Date.now() + 30_000 },
  );
  if (error !== undefined) {
    const reason = trailers.get('grpc-status-details-bin').length > 0 ? errorDetails(trailers).reason : undefined;
    return `${error.code} ${reason?.toLowerCase() ?? error.details}`;
  }
  return response?.decision.output.choice === 'billing' ? undefined : 'wrong choice';
}
