/** A package's tokenizer: makes a reader, which takes linear time for any text, from a `tokenizer.json`. */
import { readFile } from 'node:fs/promises';
import { Tokenizer } from '@huggingface/tokenizers';
import { InvalidOptions } from '../packages/manifest.ts';
import { controlProblem, type TokenizerDefinition } from './control-tokens.ts';
import { createPlainReader, createWordReader, type TextReader } from './readers.ts';
import { unigramEncoder } from './unigram.ts';
import { type UnreadShare, unreadOfPieces, unreadOfWords } from './unread.ts';
import { boundWordPiece, type WordPieceModel } from './word-piece.ts';

/** A model's own tokenizer; adds no special tokens, and reads those in a text as plain text. */
export interface TextTokenizer {
  /** Token ids of a short text, at once. */
  ids(text: string): readonly number[];
  /** Begins to read a text of any length. */
  reader(): TextReader;
  /** Which share of a text's tokens the model has no words for; left out where the vocabulary cannot tell. */
  readonly unreadShare?: UnreadShare | undefined;
}

/** The parts of a `tokenizer.json` that say how its texts can be read. */
interface Definition extends TokenizerDefinition {
  readonly normalizer?: { readonly type?: string } | null;
  readonly pre_tokenizer?: { readonly type?: string } | null;
}

/** Loads a `tokenizer.json`. Throws as `createTokenizer` does. */
export async function loadTokenizer(path: string): Promise<TextTokenizer> {
  return createTokenizer(JSON.parse(await readFile(path, 'utf8')));
}

/**
 * The tokenizer of a `tokenizer.json`. Throws if it cannot be read, and InvalidOptions if callers could write control
 * tokens with it.
 */
export function createTokenizer(definition: TokenizerDefinition): TextTokenizer {
  const tokenizer = readTokenizer(definition);
  const problem = controlProblem(definition, tokenizer.ids);
  if (problem !== undefined) throw new InvalidOptions([problem]);
  return tokenizer;
}

/** The same, without checking for control tokens. Throws if it cannot be read. */
export function readTokenizer(definition: TokenizerDefinition): TextTokenizer {
  // The library's own Unigram takes more than linear time for a long word, and its tree of pieces is large, so the
  // library is used for other kinds only.
  const unigram = unigramEncoder(definition as never);
  if (unigram !== undefined) {
    // A definition that `unigramEncoder` reads has pieces, and one for what is unknown.
    const { vocab, unk_id: unknown } = definition.model as {
      readonly vocab: readonly (readonly [string, number])[];
      readonly unk_id: number;
    };
    const pieces = vocab.map(([piece]) => piece);
    return tokenizerOf(() => createPlainReader(unigram), unreadOfPieces(pieces, unknown));
  }
  // The library has one type for the definitions of all kinds of tokenizers.
  const tokenizer = new Tokenizer(definition as never, {});
  const { model } = tokenizer;
  if (!isWordPiece(model)) return tokenizerOf(plainReaders(tokenizer));
  boundWordPiece(model);
  const { unk_token: unknown = '', config } = model;
  return tokenizerOf(
    wordReaders(tokenizer, model, definition as Definition) ?? plainReaders(tokenizer),
    unreadOfWords(model.tokens_to_ids, { unknown, prefix: config.continuing_subword_prefix }),
  );
}

function tokenizerOf(reader: () => TextReader, unreadShare?: UnreadShare): TextTokenizer {
  return { reader, ids: (text) => wholly(reader(), text), unreadShare };
}

/** All ids that a reader finds in a text that is given to it at once. */
function wholly(reader: TextReader, text: string): readonly number[] {
  return [...reader.read(text), ...reader.end()].flat();
}

function plainReaders(tokenizer: Tokenizer): () => TextReader {
  return () => createPlainReader((text) => [tokenizer.encode(text, { add_special_tokens: false }).ids]);
}

/** Readers by BERT's rules, or undefined if these are not the definition's. */
function wordReaders(
  { normalizer, pre_tokenizer: splitter }: Tokenizer,
  model: WordPieceModel,
  definition: Definition,
): (() => TextReader) | undefined {
  const byWords =
    definition.normalizer?.type === 'BertNormalizer' &&
    definition.pre_tokenizer?.type === 'BertPreTokenizer' &&
    (definition.added_tokens ?? []).length === 0;
  if (!byWords || normalizer === null || splitter === null) return undefined;
  return () =>
    createWordReader({
      normalize: (text) => normalizer.normalize(text),
      words: (text) => splitter.pre_tokenize(text),
      model,
    });
}

function isWordPiece(model: unknown): model is WordPieceModel {
  // The library's models can be called: they are functions.
  return typeof model === 'function' && 'max_input_chars_per_word' in model;
}

// Models that were made from the same base have the same tokenizer, whose vocabulary is the largest thing in an
// engine's heap.
const SHARED = new Map<string, WeakRef<TextTokenizer>>();

/** The same as `loadTokenizer`, for a file whose SHA-256 is known: one that is loaded already is not loaded again. */
export async function sharedTokenizer(path: string, sha256: string): Promise<TextTokenizer> {
  const known = SHARED.get(sha256)?.deref();
  if (known !== undefined) return known;
  const tokenizer = await loadTokenizer(path);
  for (const [other, reference] of SHARED) if (reference.deref() === undefined) SHARED.delete(other);
  SHARED.set(sha256, new WeakRef(tokenizer));
  return tokenizer;
}
