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
