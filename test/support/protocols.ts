/** The ways to ask for a decision, side by side, for what must hold in all of them. */
import type { OutgoingHttpHeaders } from 'node:http';
import { create, toBinary } from '@bufbuild/protobuf';
import { Metadata } from '@grpc/grpc-js';
import { CreateDecisionRequestSchema } from '../../gen/umpire/v1/decision_service_pb.ts';
import { type Answer, json, VALID_BODY } from './answers.ts';
import { errorDetails } from './grpc.ts';
import { DECIDE, frame, openSession, send, sendGrpc, sendH2 } from './http.ts';

/** A way to ask. */
export interface Protocol {
  /** The bytes of a valid request with these fields in place of its own. */
  encode(fields?: object): Buffer;
  /** Sends bytes. Resolves to 'OK', or to the reason of the error as in the table of errors. */
  ask(port: number, bytes: Uint8Array, more?: Asking): Promise<string>;
}

/** What goes with the bytes. */
export interface Asking {
  /** The compression. */
  readonly coding?: string | undefined;
  readonly headers?: OutgoingHttpHeaders;
}

const toJson = (fields: object = {}): Buffer => Buffer.from(JSON.stringify({ ...VALID_BODY, ...fields }));
const toProto = (fields: object = {}): Buffer =>
  Buffer.from(
    toBinary(
      CreateDecisionRequestSchema,
      create(CreateDecisionRequestSchema, { ...VALID_BODY, choices: [...VALID_BODY.choices], ...fields }),
    ),
  );
const coded = ({ coding, headers }: Asking = {}): OutgoingHttpHeaders => ({
  ...(coding === undefined ? {} : { 'content-encoding': coding }),
  ...headers,
});
const restReason = (answer: Answer): string =>
  answer.status === 200 ? 'OK' : (json(answer).error as { code: string }).code.toUpperCase();
const connectReason = (answer: Answer): string => {
  if (answer.status === 200) return 'OK';
  const { details } = json(answer) as { details?: readonly { debug?: { reason?: string } }[] };
  return details?.find(({ debug }) => debug?.reason !== undefined)?.debug?.reason ?? answer.text;
};

/** The ways by name. */
export const PROTOCOLS = {
  REST: {
    encode: toJson,
    ask: async (port, body, more) => restReason(await send(port, { body, headers: coded(more) })),
  },
  'REST over HTTP/2': {
    encode: toJson,
    async ask(port, body, more) {
      const session = openSession(port);
      const answer = await sendH2(session, { body, headers: coded(more) });
      session.destroy();
      return restReason(answer);
    },
  },
  Connect: {
    encode: toJson,
    ask: async (port, body, more) => connectReason(await send(port, { path: DECIDE, body, headers: coded(more) })),
  },
  gRPC: {
    encode: toProto,
    async ask(port, bytes, { coding, headers } = {}) {
      const session = openSession(port);
      const { trailers } = await sendGrpc(session, {
        headers: { ...(coding === undefined ? {} : { 'grpc-encoding': coding }), ...headers },
        body: frame(bytes, { flags: coding === undefined || coding === 'identity' ? 0 : 1 }),
      });
      session.destroy();
      if (trailers['grpc-status'] === '0') return 'OK';
      return errorDetails(Metadata.fromHttp2Headers(trailers)).reason ?? '';
    },
  },
} as const satisfies Readonly<Record<string, Protocol>>;
