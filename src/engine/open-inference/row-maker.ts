/** Makes rows by the rules of a package. */
import type { Premise, TextTokenizer } from '../families/family.ts';
import type { RowRule } from './options.ts';
import { fill, idsRow, type RowTexts } from './rows.ts';
import type { ReadChoice } from './scorer.ts';
import type { Row } from './tensors.ts';

/** Makes a row of what is known for it. */
export type RowMaker = (rule: RowRule, premise: Premise | undefined, choice: ReadChoice | undefined) => Row;

/** A maker that tokenises what is not tokenised yet. */
export function createRowMaker(tokenizer: TextTokenizer): RowMaker {
  return (rule, premise, choice) => {
    const texts: RowTexts = {
      ...(premise && {
        input: { text: premise.inputText, ids: premise.input },
        instruction: { text: premise.instructionText, ids: premise.instruction },
      }),
      ...(choice && { choice }),
    };
    return rule.kind === 'ids'
      ? idsRow(rule.sequence, texts, tokenizer)
      : rule.templates.map((template) => fill(template, texts));
  };
}
