/** Callers that cost little themselves: requests are prepared once, answers are read no further than needed. */
import { connect, type Socket } from 'node:net';
import { create, toBinary } from '@bufbuild/protobuf';
import { CreateDecisionRequestSchema } from '../../gen/umpire/v1/decision_service_pb.ts';
import type { DecisionBody } from './requests.ts';

/** The outcome of a request: a decision, a refusal for overload, or anything else. */
export type Outcome = 'ok' | 'refused' | 'failed';

/** Sends one request after another. Never rejects. */
export interface Caller {
  send(body: Buffer): Promise<Outcome>;
  close(): void;
}

/** The bytes of an HTTP/1.1 request. */
export function restBytes(body: DecisionBody): Buffer {
  const json = Buffer.from(JSON.stringify(body));
  const head =
    `POST /v1/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${json.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), json]);
}

/** The bytes of a gRPC message in its frame. */
export function grpcBytes(body: DecisionBody): Buffer {
  const message = toBinary(
    CreateDecisionRequestSchema,
    create(CreateDecisionRequestSchema, { ...body, choices: [...body.choices] }),
  );
  const frame = Buffer.alloc(5);
  frame.writeUInt32BE(message.length, 1);
  return Buffer.concat([frame, message]);
}

/** A caller with an HTTP/1.1 connection of its own from an address, which it opens again if it was closed. */
export function restCaller(port: number, localAddress: string): Caller {
  let socket: Socket | undefined;
  let answer: ((outcome: Outcome) => void) | undefined;
  let received = '';

  const settle = (outcome: Outcome): void => {
    const give = answer;
    answer = undefined;
    received = '';
    give?.(outcome);
  };

  const open = (): Socket => {
    const opened = connect({ port, host: '127.0.0.1', localAddress, noDelay: true });
    opened.setEncoding('latin1');
    opened.on('data', (chunk: string) => {
      received += chunk;
      const end = received.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(received.slice(0, end))?.[1] ?? Number.NaN);
      if (received.length < end + 4 + length) return;
      const status = received.slice(9, 12);
      settle(status === '200' ? 'ok' : status === '503' || status === '429' ? 'refused' : 'failed');
    });
    opened.on('error', () => {});
    opened.on('close', () => {
      if (socket === opened) socket = undefined;
      settle('failed');
    });
    return opened;
  };

  return {
    send(bytes) {
      socket ??= open();
      return new Promise((resolve) => {
        answer = resolve;
        socket?.write(bytes);
      });
    },
    close: () => void socket?.destroy(),
  };
}
