/**
 * Readers of texts: they give the tokens of a text that arrives in pieces, so that nothing ever works on more than a
 * piece of it at a time.
 */
import { piecesOf } from './pieces.ts';
import { streamSafe } from './stream-safe.ts';
import { isInsidePair, isLonger, type WordPieceModel } from './word-piece.ts';

/**
 * Reads one text, piece by piece. Ids come in parts: no part takes more work than a piece of ordinary text, whatever
 * the piece becomes. The work for a part is done when the part is asked for; all parts of a piece are taken before the
 * next piece is read.
 */
export interface TextReader {
  /** Reads the next piece: the ids that are known by now, after those of earlier pieces. */
  read(piece: string): Iterable<readonly number[]>;
  /** The rest of the ids. */
  end(): Iterable<readonly number[]>;
}

/** What a reader for BERT's rules works with: how it treats a text, and what its words become. */
export interface WordRules {
  /** Works character by character, except for runs of marks and a final sigma. */
  normalize(text: string): string;
  /** Words are separated by white space and punctuation. */
  words(text: string): readonly string[];
  readonly model: WordPieceModel;
}

/**
 * Reads by BERT's rules. Its tokens are those of the whole text wherever the pieces were cut, except inside a run of
 * marks, and except for a sigma at a cut (its form depends on whether a letter follows). The word at a piece's end
 * waits for the next piece.
 */
export function createWordReader({ normalize, words, model }: WordRules): TextReader {
  const longest = model.max_input_chars_per_word;
  let begun = '';
  const ids = (of: readonly string[]): readonly number[] => model.encode(of).map((token) => idOf(model, token));
  return {
    *read(piece) {
      const text = begun + normalize(streamSafe(piece));
      const found = words(text);
      const last = found.at(-1);
      const open = last !== undefined && text.endsWith(last);
      begun = open ? shortened(last, longest) : '';
      yield ids(open ? found.slice(0, -1) : found);
    },
    *end() {
      if (begun !== '') yield ids(words(begun));
      begun = '';
    },
  };
}

function idOf({ tokens_to_ids, unk_token }: WordPieceModel, token: string): number {
  const id = tokens_to_ids.get(token) ?? tokens_to_ids.get(unk_token ?? '');
  if (id === undefined) throw new Error('the tokenizer has no token for unknown words');
  return id;
}

/** Cuts a word that is too long to have tokens of its own: it stays too long whatever follows. */
function shortened(word: string, longest: number): string {
  if (!isLonger(word, longest)) return word;
  const end = 2 * longest + 2;
  return word.slice(0, isInsidePair(word, end) ? end + 1 : end);
}

/** The most characters that other tokenizers are given at once: more than most texts at any model's limit have. */
const WHOLE_LENGTH = 1 << 15;

/** The ids of a text of up to WHOLE_LENGTH characters, in parts like those of a reader. */
export type PartEncoder = (text: string) => Iterable<readonly number[]>;

/**
 * Reads by any other tokenizer's rules. `encode` is given no more than a part of the text: a text of up to WHOLE_LENGTH
 * at once, a longer one in parts of at most that length, cut before white space where there is some. A word that such a
 * cut divides is read as two.
 */
export function createPlainReader(encode: PartEncoder): TextReader {
  let text = '';
  return {
    *read(piece) {
      text += piece;
      while (text.length > WHOLE_LENGTH) {
        const end = cutBefore(text, WHOLE_LENGTH);
        const part = text.slice(0, end);
        text = text.slice(end);
        yield* encode(streamSafe(part));
      }
    },
    *end() {
      if (text !== '') yield* encode(streamSafe(text));
      text = '';
    },
  };
}

/**
 * Reads what `become` makes of a text, character by character, by another reader, which is given no more than a piece
 * at a time: a character may become a long text.
 */
export function createRewritingReader(reader: TextReader, become: (text: string) => string): TextReader {
  return {
    *read(piece) {
      for (const part of piecesOf(become(piece))) yield* reader.read(part);
    },
    end: () => reader.end(),
  };
}

/** The place before the last white space up to `most`, or `most` itself if there is none in its last part. */
function cutBefore(text: string, most: number): number {
  for (let at = most; at > most - 256; at -= 1) if (/\s/.test(text.charAt(at))) return at;
  return isInsidePair(text, most) ? most - 1 : most;
}
