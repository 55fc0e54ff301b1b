/** Makes rows by the rules of a package. */

import type { TextTokenizer } from '../../text/tokenizer.ts';
import type { Premise } from '../family.ts';
import { createPace } from '../remote/pace.ts';
import type { ReadChoice } from '../remote/scorer.ts';
import { fill, type RowTexts, textsOf } from '../remote/templates.ts';
import type { RowRule } from './options.ts';
import { idsRow } from './rows.ts';
import type { Row } from './tensors.ts';

/** Makes a row of a premise alone, or one of each choice. Rejects with JobStopped when the job is no longer wanted. */
export interface RowMaker {
  ofPremise(rule: RowRule, premise: Premise, signal: AbortSignal): Promise<Row>;
  ofChoices(
    rule: RowRule,
    premise: Premise | undefined,
    choices: readonly ReadChoice[],
    signal: AbortSignal,
  ): Promise<readonly Row[]>;
}

/** A maker that tokenises only what has not been tokenised, and only once what does not depend on the choice. */
export function createRowMaker(tokenizer: TextTokenizer): RowMaker {
  const makeRow = (rule: RowRule, texts: RowTexts, known: Map<string, readonly number[]>): Row =>
    rule.kind === 'ids'
      ? idsRow(rule.sequence, texts, tokenizer, known)
      : rule.templates.map((template) => fill(template, texts));

  return {
    async ofPremise(rule, premise, signal) {
      await createPace(signal)();
      return makeRow(rule, textsOf(premise), new Map());
    },
    async ofChoices(rule, premise, choices, signal) {
      const pace = createPace(signal);
      const known = new Map<string, readonly number[]>();
      const texts = premise === undefined ? {} : textsOf(premise);
      const rows: Row[] = [];
      for (const choice of choices) {
        rows.push(makeRow(rule, { ...texts, choice }, known));
        await pace();
      }
      return rows;
    },
  };
}
