/**
 * The options that packages of all dialects have in common, beside `server` (server-options.ts):
 *
 *     { "dialect": what the server speaks,
 *       "tokenizer": a file of the package, or "bytes_per_token": by which tokens are counted where only the server has the tokenizer,
 *       "temperature": see temperature.ts,
 *       "batch": { "rows": n, "independent": whether a row's result does not depend on the rows beside it },
 *       "in_flight": { "requests": n, "bytes": n }, "message_bytes": n, "timeout_ms": of one request }
 *
 * The last two lines are optional. `message_bytes` bounds the rows of a request, and the answer.
 */
import { type Checker, createChecker } from '../../packages/checker.ts';
import { DEFAULT_REQUESTS } from '../../packages/servers.ts';
import type { TextTokenizer } from '../../text/tokenizer.ts';
import type { FamilyParts } from '../family.ts';
import { readTemperature, type Temperature } from '../temperature.ts';
import type { RequestBounds } from './batches.ts';
import { createByteTokens } from './byte-tokens.ts';
import type { CallBounds } from './calls.ts';

/** What counts tokens here. */
export type TokenCount =
  | { readonly kind: 'tokenizer'; readonly file: string }
  | { readonly kind: 'bytes'; readonly perToken: number };

/** The options of every dialect. */
export interface RemoteOptions {
  readonly tokens: TokenCount;
  readonly temperature: Temperature;
  readonly independent: boolean;
  readonly bounds: CallBounds & RequestBounds;
}

const MIB = 2 ** 20;

/**
 * Reads them; what is wrong becomes a problem. `rows`: of a request, where the package does not say.
 * `needsTokenizer`: the package must bring one.
 */
export function readRemoteOptions(
  fields: Checker,
  { rows, needsTokenizer }: { readonly rows: number; readonly needsTokenizer: boolean },
): RemoteOptions {
  const batch = optionalObject(fields, 'batch');
  const inFlight = optionalObject(fields, 'in_flight');
  // Asked by whoever chose the dialect.
  fields.value('dialect');
  const options: RemoteOptions = {
    tokens: tokensOf(fields, needsTokenizer),
    temperature: readTemperature(fields),
    independent: batch.flag('independent', false),
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
  // Of no use where there is a tokenizer, and no harm.
  fields.value('bytes_per_token');
  return needsTokenizer || fields.value('tokenizer') !== undefined
    ? { kind: 'tokenizer', file: fields.text('tokenizer', /./u) }
    : { kind: 'bytes', perToken: fields.number('bytes_per_token', 1, 16) };
}

/** The counting of a package. Throws what loading its tokenizer throws. */
export async function tokenizerOf(tokens: TokenCount, parts: Pick<FamilyParts, 'tokenizer'>): Promise<TextTokenizer> {
  return tokens.kind === 'bytes' ? createByteTokens(tokens.perToken) : await parts.tokenizer(tokens.file);
}

/** A whole number that may be left out. */
export function optionalWhole(fields: Checker, field: string, fallback: number, least: number, most: number): number {
  return fields.fields.includes(field) ? fields.integer(field, least, most) : fallback;
}

/** An object that may be left out. */
export function optionalObject(fields: Checker, field: string): Checker {
  return fields.fields.includes(field) ? fields.object(field) : createChecker({}, field, []);
}

/** What the server does with a text that is too long: it refuses it, or reads a part and does not say so. */
export type Cuts = 'refuses' | 'silently';

/**
 * Reads `cuts`, which has to be said: where a server cuts silently, the package's own tokenizer and limits must decide.
 * What is wrong becomes a problem.
 */
export function readCuts(fields: Checker): Cuts {
  return fields.text('cuts', /^(refuses|silently)$/) === 'refuses' ? 'refuses' : 'silently';
}
