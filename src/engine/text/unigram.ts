/**
 * Unigram finds the most likely of all ways to cut a word into pieces. Pieces are looked up in one flat table, so a
 * vocabulary of 170,000 of them costs 22 MB of heap where the library's takes 101, and the work is linear in the text.
 */

import { PIECE_LENGTH } from './pieces.ts';
import type { PartEncoder } from './readers.ts';

/** The parts of a `tokenizer.json` that are read here. */
export interface UnigramDefinition {
  readonly model?: {
    readonly type?: string;
    readonly unk_id?: number | null;
    readonly byte_fallback?: boolean;
    readonly vocab?: unknown;
  };
  readonly normalizer?: Step | null;
  readonly pre_tokenizer?: {
    readonly type?: string;
    readonly replacement?: string;
    readonly prepend_scheme?: string;
    readonly split?: boolean;
  } | null;
  readonly added_tokens?: readonly unknown[];
}

interface Step {
  readonly type?: string;
  readonly normalizers?: readonly Step[];
  readonly pattern?: { readonly Regex?: string };
  readonly content?: string;
}

interface Replacement {
  readonly pattern: RegExp;
  readonly content: string;
}

interface Piece {
  readonly id: number;
  readonly score: number;
}

/** What stands for a space in pieces. */
const SPACE_MARK = '\u2581';
/** How far below the least likely piece a character without a piece scores. */
const UNKNOWN_PENALTY = 10;

/**
 * The encoder of a definition, or undefined if it is of another kind than this one: Unigram without bytes for unknown
 * characters, with replacements as normalizer, words that begin with the mark of a space, and no added tokens. Throws
 * if its pieces cannot be read.
 */
export function unigramEncoder(definition: UnigramDefinition): PartEncoder | undefined {
  const { model, pre_tokenizer: splitter } = definition;
  const replacements = replacementsOf(definition.normalizer);
  if (
    model?.type !== 'Unigram' ||
    typeof model.unk_id !== 'number' ||
    model.byte_fallback === true ||
    splitter?.type !== 'Metaspace' ||
    splitter.replacement !== SPACE_MARK ||
    splitter.prepend_scheme !== 'always' ||
    splitter.split === false ||
    replacements === undefined ||
    (definition.added_tokens ?? []).length > 0
  )
    return undefined;
  const cut = cutter(piecesOf(model.vocab), model.unk_id);
  return function* parts(text) {
    let read = text;
    for (const { pattern, content } of replacements) read = read.replace(pattern, content);
    read = read.replaceAll(SPACE_MARK, ' ');
    let ids: number[] = [];
    let begun = 0;
    for (let start = 0; start < read.length; ) {
      const next = read.indexOf(' ', start + 1);
      const end = next < 0 ? read.length : next;
      const word = cut(SPACE_MARK + read.slice(read.charAt(start) === ' ' ? start + 1 : start, end));
      // A long word takes several parts before it has ids.
      while (!word.advance(PIECE_LENGTH)) yield [];
      word.append(ids);
      start = end;
      if (end - begun < PIECE_LENGTH) continue;
      yield ids;
      ids = [];
      begun = end;
    }
    yield ids;
  };
}

/** The search for a word's pieces. */
interface WordCut {
  /** Goes on by this many characters; returns whether the end of the word is reached. */
  advance(characters: number): boolean;
  /** At the end of the word: appends the ids of its pieces. */
  append(ids: number[]): void;
}

function cutter(pieces: ReadonlyMap<string, Piece>, unknown: number): (word: string) => WordCut {
  const longest = longestByStart(pieces);
  const unknownScore = leastScore(pieces) - UNKNOWN_PENALTY;
  return (word) => {
    const size = word.length;
    const best = new Float64Array(size + 1).fill(Number.NEGATIVE_INFINITY);
    const from = new Int32Array(size + 1);
    const piece = new Int32Array(size + 1);
    best[0] = 0;
    let start = 0;
    const offer = (end: number, score: number, id: number): void => {
      const whole = (best[start] as number) + score;
      if (whole <= (best[end] as number)) return;
      best[end] = whole;
      from[end] = start;
      piece[end] = id;
    };
    return {
      advance(characters) {
        const stop = Math.min(size, start + characters);
        while (start < stop) {
          const first = widthAt(word, start);
          const last = Math.min(size, start + (longest.get(word.codePointAt(start) as number) ?? 0));
          let alone = false;
          for (let end = start + first; end <= last; end += widthAt(word, end)) {
            const found = pieces.get(word.slice(start, end));
            if (found === undefined) continue;
            offer(end, found.score, found.id);
            alone ||= end === start + first;
          }
          if (!alone) offer(start + first, unknownScore, unknown);
          start += first;
        }
        return start >= size;
      },
      append(ids) {
        const reversed: number[] = [];
        for (let end = size; end > 0; end = from[end] as number) {
          const id = piece[end] as number;
          // A run of unknown characters is one token.
          if (id !== unknown || reversed.at(-1) !== unknown) reversed.push(id);
        }
        for (let i = reversed.length - 1; i >= 0; i--) ids.push(reversed[i] as number);
      },
    };
  };
}

/** The replacements that a normalizer consists of, or undefined if it does anything else. */
function replacementsOf(normalizer: Step | null | undefined): readonly Replacement[] | undefined {
  if (normalizer === null || normalizer === undefined) return [];
  const steps = normalizer.type === 'Sequence' ? (normalizer.normalizers ?? []) : [normalizer];
  const found: Replacement[] = [];
  for (const { type, pattern, content } of steps) {
    if (type !== 'Replace' || pattern?.Regex === undefined || content === undefined) return undefined;
    found.push({ pattern: new RegExp(pattern.Regex, 'gu'), content });
  }
  return found;
}

function piecesOf(vocabulary: unknown): ReadonlyMap<string, Piece> {
  const pieces = new Map<string, Piece>();
  for (const [id, entry] of (Array.isArray(vocabulary) ? vocabulary : []).entries()) {
    const [text, score]: readonly unknown[] = Array.isArray(entry) ? entry : [];
    if (typeof text !== 'string' || typeof score !== 'number')
      throw new Error(`the tokenizer's piece ${id} is not a text with a score`);
    pieces.set(text, { id, score });
  }
  if (pieces.size === 0) throw new Error('the tokenizer has no pieces');
  return pieces;
}

/** The length of the longest piece by its first code point. */
function longestByStart(pieces: ReadonlyMap<string, Piece>): ReadonlyMap<number, number> {
  const found = new Map<number, number>();
  for (const text of pieces.keys()) {
    const start = text.codePointAt(0);
    if (start !== undefined) found.set(start, Math.max(found.get(start) ?? 0, text.length));
  }
  return found;
}

function leastScore(pieces: ReadonlyMap<string, Piece>): number {
  let least = 0;
  for (const { score } of pieces.values()) least = Math.min(least, score);
  return least;
}

function widthAt(text: string, place: number): number {
  return (text.codePointAt(place) as number) > 0xffff ? 2 : 1;
}
