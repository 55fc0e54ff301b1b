/** How an inference call fails. The messages are for the operator's log, so they hold nothing of a caller's texts. */
import type { CallOutcome } from '../../engine.ts';
import { messageOf } from '../../errors.ts';
import type { TokenCounts } from '../family.ts';

/**
 * What a failure says about the server. `request`: the server is well, and refused this one request. `server`: the
 * server failed, and several such failures in a row make it unfit. `unfit`: asking it again is pointless until
 * something is changed.
 */
export type Blame = 'request' | 'server' | 'unfit';

/** A text that the server does not read whole; `tokens` and `limit` are the server's own counts, if it gave them. */
export type TooLong = Pick<TokenCounts, 'tokens' | 'limit'>;

/** What else is known about a failed call. */
export interface FailureDetails {
  /**
   * What the server said. It may quote the texts that it was sent, so it is shown only where these are the operator's
   * own.
   */
  readonly details?: string;
  /** The gRPC status that the call ended with; undefined if it ended here or over HTTP. */
  readonly code?: number;
  /** `server` by default. */
  readonly blame?: Blame;
  readonly tooLong?: TooLong | undefined;
  /** Milliseconds after which the server wants to be asked again. */
  readonly retryAfter?: number | undefined;
}

/** The server did not answer, or not with what was asked for. */
export class CallFailed extends Error {
  override readonly name = 'CallFailed';
  readonly outcome: Exclude<CallOutcome, 'answered'>;
  readonly details: string;
  readonly code: number | undefined;
  readonly blame: Blame;
  readonly tooLong: TooLong | undefined;
  readonly retryAfter: number | undefined;
  constructor(
    outcome: Exclude<CallOutcome, 'answered'>,
    message: string,
    { details = '', code, blame = 'server', tooLong, retryAfter }: FailureDetails = {},
  ) {
    super(message);
    this.outcome = outcome;
    this.details = details;
    this.code = code;
    this.blame = blame;
    this.tooLong = tooLong;
    this.retryAfter = retryAfter;
  }
}

/** An answer that cannot be used. */
export function malformed(message: string): CallFailed {
  return new CallFailed('malformed', message);
}

/** The most UTF-16 code units that are shown of what a server said. */
const LONGEST_DETAILS = 300;

/** Why a call about the operator's own texts failed, with what the server said: on one line, and shortened. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof CallFailed)) return messageOf(error);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  const details = error.details.slice(0, LONGEST_DETAILS).replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ');
  return details === '' ? error.message : `${error.message}: ${details}`;
}
