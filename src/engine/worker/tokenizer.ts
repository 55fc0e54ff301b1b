/** A package's tokenizer. */
import { readFile } from 'node:fs/promises';
import { Tokenizer } from '@huggingface/tokenizers';
import type { TextTokenizer } from '../families/family.ts';

/** Loads a `tokenizer.json`. Throws if it is not one. */
export async function loadTokenizer(path: string): Promise<TextTokenizer> {
  const definition = JSON.parse(await readFile(path, 'utf8'));
  const tokenizer = new Tokenizer(definition, {});
  return {
    ids: (text) => tokenizer.encode(text, { add_special_tokens: false }).ids,
    splitsAtSpace: definition.pre_tokenizer?.type === 'BertPreTokenizer',
  };
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
