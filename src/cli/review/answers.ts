/** What a person can answer to a text, and by which keys; and how both are written for a screen. */
import { visible } from '../../visible.ts';
import { plainly } from '../decide/decide.ts';
import type { Decided, Deck } from './deck.ts';

/** A choice that has a key. `probability`: undefined where the file does not say. */
export interface Offered {
  readonly key: string;
  readonly choice: string;
  readonly probability: number | undefined;
}

/** Keys of choices, in their order. */
const KEYS = [...'1234567890abcdefghijklmnopqrstuvwxyz'];

/**
 * The choices that have keys: all of them by the same keys for every text, or, of more than there are keys, the
 * likeliest. A choice whose name is a key has that one. `choices`: in code-unit order.
 */
export function offeredFor(
  { choice: decided, probabilities }: Decided,
  choices: readonly string[],
): readonly Offered[] {
  const known = (choice: string): number | undefined =>
    Object.hasOwn(probabilities, choice) ? probabilities[choice] : undefined;
  const rank = (choice: string): number => (choice === decided ? 2 : (known(choice) ?? -1));
  const some =
    choices.length <= KEYS.length ? choices : choices.toSorted((a, b) => rank(b) - rank(a)).slice(0, KEYS.length);
  const free = KEYS.filter((key) => !some.includes(key)).values();
  return some.map((choice) => ({
    choice,
    key: KEYS.includes(choice) ? choice : (free.next().value as string),
    probability: known(choice),
  }));
}

/** The choices that a typed text may mean: the one of that name, those that begin with it, and those that have it. */
export function meantBy(typed: string, choices: readonly string[]): readonly string[] {
  const sought = plainly(typed);
  const same = choices.filter((choice) => choice === typed);
  const begin = choices.filter((choice) => plainly(choice).startsWith(sought));
  const hold = choices.filter((choice) => plainly(choice).includes(sought));
  return [...new Set([...same, ...begin, ...hold])];
}

/** Where the work is, in a line. */
export function progressOf({ counts: { place, all, labelled, skipped } }: Deck): string {
  return `${Math.min(place, all)} of ${all}: ${labelled} have a label, ${skipped} skipped`;
}

/** What was decided, in a line. */
export function decisionOf({ choice, confidence, model, pupil }: Decided): string {
  const by = model === '' ? '' : ` by ${model}`;
  const other = pupil === undefined ? '' : `; the catalog: ${pupil.choice} ${shareOf(Number(pupil.confidence))}`;
  return visible(`Decided: ${choice} ${shareOf(confidence)}${by}${other}`);
}

/** A choice with its key, in a line. */
export function offerOf({ key, choice, probability }: Offered): string {
  return visible(`${key} ${choice}${probability === undefined ? '' : ` ${shareOf(probability)}`}`);
}

/** The lines of a text that may have several, with nothing in them that acts. */
export function linesOfText(text: string): readonly string[] {
  return text.split(/\r\n|[\r\n\u2028\u2029]/).map((line) => visible(line.replaceAll('\t', '    ')));
}

function shareOf(probability: number): string {
  return probability.toFixed(3);
}
