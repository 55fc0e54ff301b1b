/**
 * The options that packages of all dialects have in common, beside `server` (server-options.ts):
 *
 *     { "dialect": what the server speaks,
 *       "tokenizer": a file of the package, or "bytes_per_token": by which tokens are counted where only the server
 *                    has the tokenizer,
 *       "temperature": see temperature.ts,
 *       "batch": { "rows": n, "independent": whether a row's result does not depend on the rows beside it,
 *                  "choices": the most choices of a decision that are sent },
 *       "shortlist": what picks as many if there are more, see shortlist.ts,
 *       "in_flight": { "requests": n, "bytes": n }, "message_bytes": n, "timeout_ms": of one request }
 *
 * Everything from `batch` on is optional. `message_bytes` bounds the rows of a request, and the answer.
 */
import type { Checker } from '../../packages/manifest.ts';
import { DEFAULT_REQUESTS } from '../../packages/servers.ts';
import type { TextTokenizer } from '../../text/tokenizer.ts';
import type { FamilyParts, Premise } from '../family.ts';
import { readTemperature, type Temperature } from '../temperature.ts';
import type { CallBounds, RequestBounds } from './calls.ts';
import type { ReadChoice } from './scorer.ts';
import { type ChoiceCap, readShortlist, type ShortlistOptions } from './shortlist.ts';

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
  /**
   * Whether the package must bring a tokenizer. If that is left out, `cuts` of the options says what the server does
   * with a text that is too long: where it reads a part and does not say so, the package's own tokenizer and limits
   * must decide.
   */
  readonly needsTokenizer?: boolean;
  /**
   * How many choices the server takes, in a dialect that has a field of its own for that and no rows; in others it is
   * `batch.choices`.
   */
  readonly cap?: ChoiceCap;
}

/** Reads these options; what is wrong becomes a problem. */
export function readRemoteOptions(
  fields: Checker,
  { rows, needsTokenizer, ...dialect }: DialectDefaults,
): RemoteOptions {
  const isCounted = needsTokenizer ?? fields.oneOf('cuts', ['silently', 'refuses']) === 'silently';
  if (dialect.cap !== undefined && fields.has('batch'))
    fields.problem('is for rows, and this dialect has none: options says how many choices go at a time', 'batch');
  const batch = fields.object('batch', {});
  const inFlight = fields.object('in_flight', {});
  const choices = batch.has('choices') ? batch.integer('choices', 2, 300) : undefined;
  const cap = dialect.cap ?? (choices === undefined ? undefined : { field: 'batch.choices', choices });
  // `dialect` was read before, when the dialect was chosen.
  fields.value('dialect');
  const options: RemoteOptions = {
    tokens: tokensOf(fields, isCounted),
    temperature: readTemperature(fields),
    independent: batch.flag('independent', false),
    cap,
    shortlist: readShortlist(fields, cap),
    bounds: {
      rows: batch.integer('rows', 1, 300, rows),
      requests: inFlight.integer('requests', 1, 256, DEFAULT_REQUESTS),
      bytes: inFlight.integer('bytes', MIB, 1024 * MIB, 64 * MIB),
      messageBytes: fields.integer('message_bytes', 65_536, 256 * MIB, 4 * MIB),
      timeoutMs: fields.integer('timeout_ms', 10, 30_000, 5000),
    },
  };
  for (const each of [batch, inFlight]) each.refuseOthers();
  return options;
}

function tokensOf(fields: Checker, needsTokenizer: boolean): TokenCount {
  // `bytes_per_token` may be set beside a tokenizer, but is not used then.
  fields.value('bytes_per_token');
  return needsTokenizer || fields.has('tokenizer')
    ? { kind: 'tokenizer', file: fields.text('tokenizer', /./u) }
    : { kind: 'bytes', perToken: fields.number('bytes_per_token', 1, 16) };
}

/** The tokenizer that counts the tokens of a package. Throws what loading its file throws. */
export async function tokenizerOf(tokens: TokenCount, parts: Pick<FamilyParts, 'tokenizer'>): Promise<TextTokenizer> {
  return tokens.kind === 'bytes' ? createByteTokens(tokens.perToken) : await parts.tokenizer(tokens.file);
}

// Counts tokens where only the server has the tokenizer: a fixed number of UTF-8 bytes counts as one.

/** A tokenizer whose ids mean nothing; only their number does. */
function createByteTokens(bytesPerToken: number): TextTokenizer {
  const tokensOf = (bytes: number): readonly number[] => new Array<number>(bytes).fill(0);
  return {
    ids: (text) => tokensOf(Math.ceil(Buffer.byteLength(text) / bytesPerToken)),
    reader() {
      let bytes = 0;
      return {
        read(piece) {
          bytes += Buffer.byteLength(piece);
          const whole = Math.floor(bytes / bytesPerToken);
          bytes -= whole * bytesPerToken;
          return [tokensOf(whole)];
        },
        end: () => [tokensOf(Math.ceil(bytes / bytesPerToken))],
      };
    },
  };
}

// Templates of a package: texts with `{input}`, `{instruction}` and `{choice}` in them. They say what a server reads of
// a decision. A text that is filled in is taken literally, whatever it holds.

/** The texts that a template may mention. */
export type TextName = 'input' | 'instruction' | 'choice' | 'choices' | 'letter';

/** The texts of one row, and the tokens of those that have been tokenised. */
export type RowTexts = Readonly<Partial<Record<TextName, { readonly text: string; readonly ids?: readonly number[] }>>>;

const MENTION = /\{(input|instruction|choices?|letter)\}/g;

/** The texts that a template mentions. */
export function mentioned(template: string): readonly TextName[] {
  return [...template.matchAll(MENTION)].map(([, name]) => name as TextName);
}

/** The template with its texts; the mention of a text that is not given stays as it is. */
export function fill(template: string, texts: RowTexts): string {
  return template.replaceAll(MENTION, (whole, name: TextName) => texts[name]?.text ?? whole);
}

/** The texts of a premise and, if there is one, of a choice. */
export function textsOf(premise: Premise, choice?: ReadChoice): RowTexts {
  return {
    input: { text: premise.inputText, ids: premise.input },
    instruction: { text: premise.instructionText, ids: premise.instruction },
    ...(choice && { choice }),
  };
}

/** Reads in how many orders the choices are asked, which may be left out. What is wrong becomes a problem. */
export function readTurns(fields: Checker, field: string): number {
  const turns = fields.integer(field, 1, 4, 1);
  if (turns === 3) fields.problem('must be 1, 2 or 4', field);
  return turns;
}

/** Reads a template; it may mention these texts, and must mention the last of them. What is wrong becomes a problem. */
export function readTemplate(templates: Checker, field: string, names: readonly TextName[]): string {
  const template = templates.text(field, /./su);
  checkMentions(templates, field, [template], names);
  return template;
}

/** Notes a problem where the templates of a field do not mention the texts needed, or mention others than `names`. */
export function checkMentions(
  fields: Checker,
  field: string,
  templates: readonly string[],
  names: readonly TextName[],
  needed: readonly TextName[] = names.slice(-1),
): void {
  const found = new Set(templates.flatMap(mentioned));
  for (const name of needed) if (!found.has(name)) fields.problem(`must mention {${name}}`, field);
  for (const name of found) if (!names.includes(name)) fields.problem(`must not mention {${name}}`, field);
}
