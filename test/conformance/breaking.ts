/** Ways to break answers. */
import { fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import type { Answer } from '../../conformance/answer.ts';
import { frameOf } from '../../conformance/rpc.ts';
import { CreateDecisionResponseSchema } from '../../gen/umpire/v1/decision_service_pb.ts';
import type { Breakage, SeenRequest } from './tape.ts';

export type When = (request: SeenRequest, answer: Answer, before: readonly SeenRequest[]) => boolean;
export type Change = (answer: Answer, request: SeenRequest) => Answer;

/** Changes the answers to some requests. */
export const on =
  (when: When, change: Change): Breakage =>
  (request, answer, before) =>
    when(request, answer, before) ? change(answer, request) : undefined;

/** Another status, the rest as it was. */
export const status =
  (code: number): Change =>
  (answer) => ({ ...answer, status: code });

/** Another header; undefined takes it away. */
export const header =
  (name: string, value: string | undefined): Change =>
  (answer) => {
    const { [name]: _, ...headers } = answer.headers;
    return { ...answer, headers: value === undefined ? headers : { ...headers, [name]: value } };
  };

/** Another trailer; undefined takes it away. */
export const trailer =
  (name: string, value: string | undefined): Change =>
  (answer) => {
    const { [name]: _, ...trailers } = answer.trailers;
    return { ...answer, trailers: value === undefined ? trailers : { ...trailers, [name]: value } };
  };

/** Another body, made of the JSON that was there. */
export const json =
  // biome-ignore lint/suspicious/noExplicitAny: breakages reach into bodies of all shapes
    (change: (body: any, request: SeenRequest) => unknown): Change =>
    (answer, request) => {
      const body = JSON.parse(answer.body.toString() || '{}');
      return { ...answer, body: Buffer.from(JSON.stringify(change(body, request) ?? body)) };
    };

/** Another body. */
export const text =
  (body: string): Change =>
  (answer) => ({ ...answer, body: Buffer.from(body) });

/** Another output of a decision. */
// biome-ignore lint/suspicious/noExplicitAny: likewise
export const output = (change: (output: any) => object): Change =>
  json((body) => ({ ...body, output: { ...body.output, ...change(body.output) } }));

/** Another confidence: the smallest thing that can be wrong. */
export const confidence: Change = output(({ confidence: value }) => ({ confidence: value / 2 }));

/** Another confidence in a protobuf; framed for gRPC. */
export const protoConfidence =
  (framed: boolean): Change =>
  (answer) => {
    const message: MessageShape<typeof CreateDecisionResponseSchema> = fromBinary(
      CreateDecisionResponseSchema,
      framed ? answer.body.subarray(5) : answer.body,
    );
    if (message.decision?.output !== undefined) message.decision.output.confidence /= 2;
    const bytes = toBinary(CreateDecisionResponseSchema, message);
    return { ...answer, body: framed ? frameOf(bytes) : Buffer.from(bytes) };
  };

/** What becomes of a refusal: it is not made, or it has another code, type or parameter. */
export const WRONG_REFUSALS: readonly Change[] = [
  (answer) => ({ ...answer, status: 200, body: Buffer.from('{"output":{"probabilities":{}},"usage":{}}') }),
  json(({ error }) => ({ error: { ...error, code: 'another' } })),
  json(({ error }) => ({ error: { ...error, type: 'server_error' } })),
  json(({ error }) => ({ error: { ...error, param: 'another' } })),
];

/** Another message of an error. */
export const message: Change = json(({ error }) => ({ error: { ...error, message: 'no' } }));

/** A refusal of another status, of none that can be read, and a Status without details. */
export const WRONG_STATUSES: readonly Change[] = [
  trailer('grpc-status', '2'),
  trailer('grpc-status-details-bin', undefined),
  trailer('grpc-status-details-bin', 'CAM'),
];
/** A refusal of Connect without its reason, of another code, and of another status. */
export const CONNECT_REFUSALS: readonly Change[] = [
  json((body) => ({ ...body, details: [] })),
  json((body) => ({ ...body, code: 'unknown' })),
  status(500),
];
