/**
 * Templates of a package: texts with `{input}`, `{instruction}` and `{choice}` in them. They say what a server reads of
 * a decision. A text that is filled in is taken literally, whatever it holds.
 */
import type { Checker } from '../../packages/checker.ts';
import type { Premise } from '../family.ts';
import type { ReadChoice } from './scorer.ts';

/** The texts that a template may mention. */
export type TextName = 'input' | 'instruction' | 'choice';

/** The texts of one row, and the tokens of those that have been tokenised. */
export type RowTexts = Readonly<Partial<Record<TextName, { readonly text: string; readonly ids: readonly number[] }>>>;

const MENTION = /\{(input|instruction|choice)\}/g;

/** The texts that a template mentions. */
export function mentioned(template: string): readonly TextName[] {
  return [...template.matchAll(MENTION)].map(([, name]) => name as TextName);
}

/** The template with its texts; the mention of a text that is not given stays as it is. */
export function fill(template: string, texts: RowTexts): string {
  return template.replaceAll(MENTION, (whole, name: TextName) => texts[name]?.text ?? whole);
}

/** The texts of a premise and, if there is one, of a choice. */
export function textsOf(premise: Premise, choice?: ReadChoice): RowTexts {
  return {
    input: { text: premise.inputText, ids: premise.input },
    instruction: { text: premise.instructionText, ids: premise.instruction },
    ...(choice && { choice }),
  };
}

/** Reads a template; it may mention these texts, and must mention the last of them. What is wrong becomes a problem. */
export function readTemplate(templates: Checker, field: string, names: readonly TextName[]): string {
  const template = templates.text(field, /./su);
  checkMentions(templates, field, [template], names);
  return template;
}

/** Notes a problem where the templates of a field do not mention the last of these texts, or others than these. */
export function checkMentions(
  fields: Checker,
  field: string,
  templates: readonly string[],
  names: readonly TextName[],
): void {
  const found = new Set(templates.flatMap(mentioned));
  const needed = names.at(-1) as TextName;
  if (!found.has(needed)) fields.problem(`must mention {${needed}}`, field);
  for (const name of found) if (!names.includes(name)) fields.problem(`must not mention {${name}}`, field);
}
