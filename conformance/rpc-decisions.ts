/** Decisions by RPC, as the kit asks for them and compares them with those of REST. */
import { fromBinary } from '@bufbuild/protobuf';
import { DecisionService } from '../gen/umpire/v1/decision_service_pb.ts';
import type { Answer } from './answer.ts';
import type { Decided, Kit, Question } from './kit.ts';
import { ODD_CHOICES } from './odd-choices.ts';
import { grpcMessage, rpcOf } from './rpc.ts';

/** The RPC that makes decisions. */
export const CREATE_DECISION = rpcOf(DecisionService.method.createDecision);

/** The kit's question as a message takes it. */
export async function questionMessage(kit: Kit): Promise<Question & { readonly choices: string[] }> {
  const { choices, ...question } = await kit.question();
  return { ...question, choices: [...choices] };
}

/** The same with its own choices, and with odd ones. */
export async function questionMessages(kit: Kit): Promise<readonly (Question & { readonly choices: string[] })[]> {
  const question = await questionMessage(kit);
  return [question, { ...question, choices: ODD_CHOICES.slice(0, (await kit.model()).limits.choices) }];
}

/** The decision in an answer by gRPC that must be one. */
export function grpcDecided(answer: Answer): Decided {
  return numbersOf(grpcMessage(answer, CREATE_DECISION));
}

/** The decision in the bytes of a message. */
export function protoDecided(bytes: Uint8Array): Decided {
  return numbersOf(fromBinary(CREATE_DECISION.output, bytes));
}

function numbersOf({ decision }: ReturnType<typeof grpcMessage<typeof CREATE_DECISION.output>>): Decided {
  const output = decision?.output;
  return {
    choice: output?.choice ?? '',
    confidence: output?.confidence ?? Number.NaN,
    probabilities: { ...output?.probabilities },
    inputTokens: decision?.usage?.inputTokens ?? Number.NaN,
    model: decision?.model ?? '',
  };
}
