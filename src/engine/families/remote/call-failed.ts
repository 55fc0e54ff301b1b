/**
 * How a call of an inference server fails. The messages are for the operator's log: they hold nothing of a caller's.
 */
import type { CallOutcome } from '../../engine.ts';
import { messageOf } from '../../errors.ts';

/** The server did not answer, or not with what was asked for. */
export class CallFailed extends Error {
  override readonly name = 'CallFailed';
  readonly outcome: Exclude<CallOutcome, 'answered'>;
  /** What the server said. It may quote the texts it was sent: only for calls whose texts are the operator's own. */
  readonly details: string;
  /** The gRPC status that the call ended with; undefined if it ended here. */
  readonly code: number | undefined;
  constructor(outcome: Exclude<CallOutcome, 'answered'>, message: string, details = '', code?: number) {
    super(message);
    this.outcome = outcome;
    this.details = details;
    this.code = code;
  }
}

/** An answer that cannot be used. */
export function malformed(message: string): CallFailed {
  return new CallFailed('malformed', message);
}

const LONGEST_DETAILS = 300;

/** Why a call about the operator's own texts failed, what the server said included: on one line, and not for ever. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof CallFailed)) return messageOf(error);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  const details = error.details.slice(0, LONGEST_DETAILS).replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ');
  return details === '' ? error.message : `${error.message}: ${details}`;
}
