/** A package's tokenizer. */
import { readFile } from 'node:fs/promises';
import { Tokenizer } from '@huggingface/tokenizers';
import type { TextReader, TextTokenizer } from '../families/family.ts';
import { createPlainReader, createWordReader } from '../text/readers.ts';
import { unigramEncoder } from '../text/unigram.ts';
import { boundWordPiece, type WordPieceModel } from '../text/word-piece.ts';

/** The parts of a `tokenizer.json` that say how its texts can be read. */
interface Definition {
  readonly normalizer?: { readonly type?: string } | null;
  readonly pre_tokenizer?: { readonly type?: string } | null;
  readonly added_tokens?: readonly unknown[];
}

/** Loads a `tokenizer.json`. Throws if it is not one. */
export async function loadTokenizer(path: string): Promise<TextTokenizer> {
  const definition = JSON.parse(await readFile(path, 'utf8'));
  // The library's own Unigram takes time beyond linear in a long word, and its tree of pieces is large: the library is asked for what is not read here only.
  const unigram = unigramEncoder(definition);
  const reader =
    unigram === undefined ? readersOf(new Tokenizer(definition, {}), definition) : () => createPlainReader(unigram);
  return { reader, ids: (text) => wholly(reader(), text) };
}

/** All ids that a reader finds in a text that is given to it at once. */
export function wholly(reader: TextReader, text: string): readonly number[] {
  const ids = reader.read(text);
  const rest = reader.end();
  return rest.length === 0 ? ids : [...ids, ...rest];
}

function readersOf(tokenizer: Tokenizer, definition: Definition): () => TextReader {
  const { model, normalizer, pre_tokenizer: splitter } = tokenizer;
  const plain = () => createPlainReader((text) => tokenizer.encode(text, { add_special_tokens: false }).ids);
  if (!isWordPiece(model)) return plain;
  boundWordPiece(model);
  const byWords =
    definition.normalizer?.type === 'BertNormalizer' &&
    definition.pre_tokenizer?.type === 'BertPreTokenizer' &&
    (definition.added_tokens ?? []).length === 0;
  if (!byWords || normalizer === null || splitter === null) return plain;
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

// Models that were made from the same base have the same tokenizer, whose vocabulary is the largest thing in an engine's heap.
const shared = new Map<string, WeakRef<TextTokenizer>>();

/** The same as `loadTokenizer`, for a file whose SHA-256 is known: one that is loaded already is not loaded again. */
export async function sharedTokenizer(path: string, sha256: string): Promise<TextTokenizer> {
  const known = shared.get(sha256)?.deref();
  if (known !== undefined) return known;
  const tokenizer = await loadTokenizer(path);
  for (const [other, reference] of shared) if (reference.deref() === undefined) shared.delete(other);
  shared.set(sha256, new WeakRef(tokenizer));
  return tokenizer;
}
