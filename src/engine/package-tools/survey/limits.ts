/** Works out the limits of a package, and what it says about texts that are too long, from what a survey found. */
import type { ModelLimits } from '../../engine.ts';
import type { Survey } from './findings.ts';
import type { LongTexts } from './long-texts.ts';

/** The limits that the operator gave; the others are worked out. */
export type AskedLimits = { readonly [K in keyof ModelLimits]?: number | undefined };

/** The limits that the package gets, by what was asked for and what the server takes. */
export interface SurveyedLimits {
  readonly limits: ModelLimits;
  /**
   * The most choices that are sent at a time: what the server takes, or has room for; undefined if it takes any number.
   */
  readonly cap: number | undefined;
  /** `options.cuts`; undefined where nothing is sent that the server could cut. */
  readonly cuts: 'refuses' | 'silently' | undefined;
  /**
   * `options.bytes_per_token` of a package without a tokenizer. No token has less than one byte. Where a server refused
   * no text that was tried, the only texts that it surely reads whole have no more bytes than it read tokens, so each
   * byte counts as one.
   */
  readonly bytesPerToken: number;
  /** What the operator is told about long texts. */
  readonly line: string | undefined;
}

/**
 * The usual most tokens of a choice, and the least where many choices share what the server reads: fewer choices are
 * better then than shorter ones. By what counts as a token.
 */
const CANDIDATES = { tokens: { usual: 96, least: 32 }, bytes: { usual: 192, least: 64 } } as const;
const MOST_CHOICES = 300;
/** The most input tokens unless the operator asks for more: longer texts are worth measuring first. */
const MOST_INPUT = 4096;
/** The tokens that are assumed where nobody says how long a text may be. */
const POSITIONS = 512;
const USUAL_BYTES = 4;
/** Tokens that are kept free for templates and for what a server adds. */
const ROOM = 16;

/**
 * Works out the limits. Throws Error if the operator must give them, or a tokenizer. `hasTokenizer`: whether the
 * package brings one. `shortlist`: the limits of its local model.
 */
export function limitsOf(
  survey: Pick<Survey, 'longTexts' | 'maxTokens' | 'reads' | 'cap'>,
  asked: AskedLimits,
  { hasTokenizer, shortlist }: { readonly hasTokenizer: boolean; readonly shortlist: ModelLimits | undefined },
): SurveyedLimits {
  const { longTexts, maxTokens, reads } = survey;
  const cuts = longTexts === undefined ? undefined : longTexts.kind === 'cut' ? 'silently' : 'refuses';
  if (cuts === 'silently' && !hasTokenizer) {
    throw new Error(
      `${cutsLine(longTexts as LongTexts & { kind: 'cut' })}: Umpire never cuts, so it has to count. --tokenizer FILE is needed, the model's tokenizer.json`,
    );
  }
  const positions = positionsOf(longTexts, maxTokens);
  if (positions === undefined && asked.inputTokens === undefined) {
    throw new Error(
      'the server cuts texts and does not say how long they may be: --input-tokens N and --candidate-tokens N are needed, which together must leave room for the templates',
    );
  }
  const room = Math.max(1, (positions ?? POSITIONS) - ROOM);
  const most = survey.cap ?? MOST_CHOICES;
  const bytesPerToken = longTexts?.kind === 'read' ? 1 : USUAL_BYTES;
  const { usual, least } = CANDIDATES[hasTokenizer || bytesPerToken > 1 ? 'tokens' : 'bytes'];
  const fit = asked.candidateTokens === undefined ? Math.max(2, Math.floor(room / 2 / least)) : most;
  const sent = { text: 0, pair: 1, all: Math.min(most, fit) }[reads];
  const share = reads === 'text' ? room : reads === 'pair' ? room / 4 : room / 2 / sent;
  const candidateTokens = asked.candidateTokens ?? Math.min(usual, Math.max(1, Math.floor(share)));
  const inputTokens = asked.inputTokens ?? Math.min(MOST_INPUT, Math.max(1, room - sent * candidateTokens));
  const cap = survey.cap === undefined ? undefined : sent;
  return {
    limits: {
      inputTokens,
      candidateTokens,
      choices: asked.choices ?? Math.min(MOST_CHOICES, shortlist?.choices ?? cap ?? MOST_CHOICES),
    },
    cap,
    cuts,
    bytesPerToken,
    line: longTexts === undefined ? undefined : lineOf(longTexts, hasTokenizer),
  };
}

/** How many tokens the server reads; undefined if nothing tells. */
function positionsOf(longTexts: LongTexts | undefined, maxTokens: number | undefined): number | undefined {
  if (longTexts === undefined) return maxTokens ?? POSITIONS;
  if (longTexts.kind === 'cut') return maxTokens;
  if (longTexts.kind === 'read') return maxTokens ?? longTexts.words;
  const limits = [longTexts.limit, maxTokens].filter((limit) => limit !== undefined);
  if (limits.length > 0) return Math.min(...limits);
  if (longTexts.accepted > 0) return longTexts.accepted;
  throw new Error('the server refuses texts of 16 words: something other than their length is wrong with them');
}

function lineOf(longTexts: LongTexts, hasTokenizer: boolean): string {
  if (longTexts.kind === 'cut') return cutsLine(longTexts);
  if (longTexts.kind === 'refused') {
    const limit = longTexts.limit === undefined ? '' : `, at ${longTexts.limit} tokens as it says`;
    return `a text that is too long is refused${limit}`;
  }
  const why = longTexts.slow ? 'it took long over them, so longer ones were not tried' : 'longer ones were not tried';
  const hint = hasTokenizer ? '' : '. With --tokenizer FILE longer ones are let in: a byte counts as a token without';
  return `texts of ${longTexts.words} words are read whole; ${why}${hint}`;
}

function cutsLine({ words }: { readonly words: number }): string {
  return `a text that is too long is cut silently: of ${words} words the second half was not read`;
}
