/** What surveys of servers are asked for, and what they find. */

import { CallFailed, reasonOf } from '../../families/remote/call-failed.ts';
import type { JsonObject } from '../../families/remote/http/parse-json.ts';
import type { Canary } from '../../packages/manifest.ts';
import type { Reply } from './asking.ts';
import type { LongTexts } from './long-texts.ts';

/** What is known about a model at a server before it is asked. */
export interface SurveyRequest {
  /** The path of requests, with its query; undefined to try the usual ones. */
  readonly path: string | undefined;
  readonly model: string | undefined;
  readonly canary: Canary;
  /** The operator's own options, which are laid over those that are found: what they say is not looked for. */
  readonly own: JsonObject;
}

/** What was found out about a server in one dialect. */
export interface Survey {
  /** The options that the dialect needs, except `server` and what counts tokens. */
  readonly options: JsonObject;
  /** Where requests go; undefined where the protocol has no paths. */
  readonly path: string | undefined;
  /** Undefined where nothing is sent that a server could cut. */
  readonly longTexts: LongTexts | undefined;
  /** Tokens that the server says it reads. */
  readonly maxTokens: number | undefined;
  /** What shares these tokens: a text alone, a text and one choice, or a text and all choices of a request. */
  readonly reads: 'text' | 'pair' | 'all';
  /** The most choices that the server takes; undefined if it takes any number. */
  readonly cap: number | undefined;
  /** A temperature that is usual for such a model. */
  readonly temperature: number;
  /** What was found, as lines that the command prints. */
  readonly lines: readonly string[];
}

/** The server does not speak the dialect; the message has what it said to each attempt. */
export class NotSuchADialect extends Error {
  override readonly name = 'NotSuchADialect';
  constructor(dialect: string, address: string, attempts: readonly string[]) {
    super(
      `the server at ${address} does not answer as the dialect ${dialect} has it; --url may name the whole path, --model the model:\n${attempts
        .map((attempt) => `  ${attempt}`)
        .join('\n')}`,
    );
  }
}

/** What was read from a reply, or in one line why it could not be. */
export type ReadReply<T> = { readonly value: T } | { readonly problem: string };

/** What `read` makes of a reply. `read` throws CallFailed for what has another shape. */
export function readReply<T>(reply: Reply, path: string, read: (body: unknown) => T): ReadReply<T> {
  if (reply.kind === 'slow') return { problem: `POST ${path} was not answered in time` };
  if (reply.kind === 'refused') return { problem: reasonOf(reply.failure) };
  try {
    return { value: read(reply.body) };
  } catch (error) {
    if (error instanceof CallFailed) return { problem: `POST ${path}: ${error.message}` };
    throw error;
  }
}

/** A text of several words, as a choice has. */
const ROW = 'one of the choices that there are';
/**
 * How much longer than a single row a full request may take, milliseconds: with the longest rows it takes some ten
 * times as long, and must not run out of time.
 */
const SLOW = 300;

/** The most rows of a request that a server takes and answers soon: `most`, halved until it does. */
export async function mostRows(most: number, send: (rows: readonly string[]) => Promise<Reply>): Promise<number> {
  /** The lesser of two times: a server that was busy with others for a moment must not look slow. */
  const time = async (rows: number): Promise<number> => {
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 2; round++) {
      const began = performance.now();
      const { kind } = await send(Array.from({ length: rows }, (_, i) => `${ROW}, ${i}`));
      if (kind !== 'answered') return Number.POSITIVE_INFINITY;
      least = Math.min(least, performance.now() - began);
    }
    return least;
  };
  const alone = await time(1);
  for (let rows = most; rows > 1; rows = Math.floor(rows / 2)) {
    if ((await time(rows)) - alone < SLOW) return rows;
  }
  return 1;
}

/** A part of the operator's own options. */
export function ownPart(own: JsonObject, field: string): JsonObject {
  const part = own[field];
  return typeof part === 'object' && part !== null && !Array.isArray(part) ? (part as JsonObject) : {};
}

/** A text of the operator's own options; undefined if there is none. */
export function ownText(own: JsonObject, field: string): string | undefined {
  const text = own[field];
  return typeof text === 'string' && text !== '' ? text : undefined;
}
