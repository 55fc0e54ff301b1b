/**
 * How one row of a request is made. For a server that takes ids, a row is a list of parts: token ids as they are, and
 * templates, which are tokenised part by part, so that no text can reach into another. The token types are 0 up to the
 * first part that reads the choice, and 1 from there. For a server that takes texts, a row is one template for each
 * input tensor.
 */
import type { TextTokenizer } from '../../text/tokenizer.ts';
import { fill, mentioned, type RowTexts, type TextName } from '../remote/options.ts';

/** A row of token ids. */
export interface IdsRow {
  readonly ids: readonly number[];
  /** The place at which token type 1 begins. */
  readonly typesFrom: number;
}

/** A row of texts, one for each input tensor. */
export type TextsRow = readonly string[];

/** Parts of an ids row. */
export type Sequence = readonly (number | string)[];

/**
 * Makes a row of ids. `known` keeps the tokens of parts that do not mention the choice, for rows of the same premise.
 */
export function idsRow(
  sequence: Sequence,
  texts: RowTexts,
  tokenizer: Pick<TextTokenizer, 'ids'>,
  known: Map<string, readonly number[]>,
): IdsRow {
  const ids: number[] = [];
  let typesFrom: number | undefined;
  for (const part of sequence) {
    if (typeof part === 'number') {
      ids.push(part);
      continue;
    }
    const readsChoice = mentioned(part).includes('choice');
    if (readsChoice) typesFrom ??= ids.length;
    const [, only] = /^\{(input|instruction|choice)\}$/.exec(part) ?? [];
    const tokens = texts[only as TextName]?.ids ?? known.get(part) ?? tokenizer.ids(fill(part, texts));
    if (!readsChoice) known.set(part, tokens);
    for (const id of tokens) ids.push(id);
  }
  return { ids, typesFrom: typesFrom ?? ids.length };
}
