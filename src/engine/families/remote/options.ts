/**
 * The options that packages of all dialects have in common, beside `server` (server-options.ts):
 *
 *     { "dialect": what the server speaks,
 *       "tokenizer": a file of the package, or "bytes_per_token": by which tokens are counted where only the server
 *                    has the tokenizer,
 *       "temperature": see temperature.ts,
 *       "batch": { "rows": n, "independent": whether a row's result does not depend on the rows beside it,
 *                  "choices": the most choices of a decision that are sent },
 *       "shortlist": what picks as many if there are more, see shortlist-options.ts,
 *       "in_flight": { "requests": n, "bytes": n }, "message_bytes": n, "timeout_ms": of one request }
 *
 * Everything from `batch` on is optional. `message_bytes` bounds the rows of a request, and the answer.
 */
import { type Checker, createChecker } from '../../packages/checker.ts';
import { DEFAULT_REQUESTS } from '../../packages/servers.ts';
import type { TextTokenizer } from '../../text/tokenizer.ts';
import type { FamilyParts } from '../family.ts';
import { readTemperature, type Temperature } from '../temperature.ts';
import type { RequestBounds } from './batches.ts';
import { createByteTokens } from './byte-tokens.ts';
import type { CallBounds } from './calls.ts';
import { type ChoiceCap, readShortlist, type ShortlistOptions } from './shortlist-options.ts';

/** How tokens are counted in this process. */
export type TokenCount =
  | { readonly kind: 'tokenizer'; readonly file: string }
  | { readonly kind: 'bytes'; readonly perToken: number };

/** The options of every dialect. */
export interface RemoteOptions {
  readonly tokens: TokenCount;
  readonly temperature: Temperature;
  readonly independent: boolean;
  /** The most choices that the server is sent; undefined if any number. */
  readonly cap: ChoiceCap | undefined;
  readonly shortlist: ShortlistOptions | undefined;
  readonly bounds: CallBounds & RequestBounds;
}

const MIB = 2 ** 20;

/** What differs by dialect. */
export interface DialectDefaults {
  /** Rows of a request, where the package does not say. */
  readonly rows: number;
  /** Whether the package must bring a tokenizer. */
  readonly needsTokenizer: boolean;
  /**
   * How many choices the server takes, in a dialect that has a field of its own for that; in others it is
   * `batch.choices`.
   */
  readonly cap?: ChoiceCap;
}

/** Reads these options; what is wrong becomes a problem. */
export function readRemoteOptions(
  fields: Checker,
  { rows, needsTokenizer, ...dialect }: DialectDefaults,
): RemoteOptions {
  const batch = optionalObject(fields, 'batch');
  const inFlight = optionalObject(fields, 'in_flight');
  const choices = batch.value('choices') === undefined ? undefined : batch.integer('choices', 2, 300);
  const cap = dialect.cap ?? (choices === undefined ? undefined : { field: 'batch.choices', choices });
  // `dialect` was read before, when the dialect was chosen.
  fields.value('dialect');
  const options: RemoteOptions = {
    tokens: tokensOf(fields, needsTokenizer),
    temperature: readTemperature(fields),
    independent: batch.flag('independent', false),
    cap,
    shortlist: readShortlist(fields, cap),
    bounds: {
      rows: optionalWhole(batch, 'rows', rows, 1, 300),
      requests: optionalWhole(inFlight, 'requests', DEFAULT_REQUESTS, 1, 256),
      bytes: optionalWhole(inFlight, 'bytes', 64 * MIB, MIB, 1024 * MIB),
      messageBytes: optionalWhole(fields, 'message_bytes', 4 * MIB, 65_536, 256 * MIB),
      timeoutMs: optionalWhole(fields, 'timeout_ms', 5000, 10, 30_000),
    },
  };
  for (const each of [batch, inFlight]) each.refuseOthers();
  return options;
}

function tokensOf(fields: Checker, needsTokenizer: boolean): TokenCount {
  // `bytes_per_token` may be set beside a tokenizer, but is not used then.
  fields.value('bytes_per_token');
  return needsTokenizer || fields.value('tokenizer') !== undefined
    ? { kind: 'tokenizer', file: fields.text('tokenizer', /./u) }
    : { kind: 'bytes', perToken: fields.number('bytes_per_token', 1, 16) };
}

/** The tokenizer that counts the tokens of a package. Throws what loading its file throws. */
export async function tokenizerOf(tokens: TokenCount, parts: Pick<FamilyParts, 'tokenizer'>): Promise<TextTokenizer> {
  return tokens.kind === 'bytes' ? createByteTokens(tokens.perToken) : await parts.tokenizer(tokens.file);
}

/** A whole number that may be left out. */
export function optionalWhole(fields: Checker, field: string, fallback: number, least: number, most: number): number {
  return fields.fields.includes(field) ? fields.integer(field, least, most) : fallback;
}

/** An object that may be left out. */
function optionalObject(fields: Checker, field: string): Checker {
  return fields.fields.includes(field) ? fields.object(field) : createChecker({}, field, []);
}

/** What the server does with a text that is too long: it refuses it, or reads a part and does not say so. */
export type Cuts = 'refuses' | 'silently';

/**
 * Reads `cuts`, which is required: where a server cuts silently, the package's own tokenizer and limits must decide.
 * What is wrong becomes a problem.
 */
export function readCuts(fields: Checker): Cuts {
  return fields.text('cuts', /^(refuses|silently)$/) === 'refuses' ? 'refuses' : 'silently';
}
