/** Decisions by RPC: how the kit asks for them, and compares them with those of REST. */
import { fromBinary } from '@bufbuild/protobuf';
import { DecisionService } from '../gen/umpire/v1/decision_service_pb.ts';
import type { Answer } from './answer.ts';
import type { Decided, Kit, Question } from './kit.ts';
import { ODD_CHOICES } from './odd-choices.ts';
import { grpcMessage, rpcOf } from './rpc.ts';

/** The RPC that makes decisions. */
export const CREATE_DECISION = rpcOf(DecisionService.method.createDecision);

/** The kit's question, with choices in a mutable list, as protobuf messages have them. */
export async function questionMessage(kit: Kit): Promise<Question & { readonly choices: string[] }> {
  const { choices, ...question } = await kit.question();
  return { ...question, choices: [...choices] };
}

/** The kit's question with its own choices, and the same with odd ones. */
export async function questionMessages(kit: Kit): Promise<readonly (Question & { readonly choices: string[] })[]> {
  const question = await questionMessage(kit);
  return [question, { ...question, choices: ODD_CHOICES.slice(0, (await kit.model()).limits.choices) }];
}

/** The decision in an answer by gRPC. Throws BrokenPromise if the answer is anything else. */
export function grpcDecided(answer: Answer): Decided {
  return numbersOf(grpcMessage(answer, CREATE_DECISION));
}

/** The decision in the bytes of a protobuf message. */
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
