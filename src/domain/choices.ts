/**
 * What choices must be, inline in a decision and stored in a catalog alike. They are kept as sent: no trimming, no
 * normalisation.
 */
import { DomainError } from './errors.ts';

/** The contract's bounds for a decision; a model's `limits.choices` may be smaller. */
export const MIN_CHOICES = 2;
/** The most choices of a decision or a catalog, whatever the model could take. */
export const MAX_CHOICES = 300;

const invalid = (message: string): DomainError => new DomainError('INVALID_CHOICES', message, { param: 'choices' });

/** The fault in the number of choices, or undefined. */
export function choiceCountFault(count: number): DomainError | undefined {
  if (count >= MIN_CHOICES && count <= MAX_CHOICES) return undefined;
  return invalid(`choices must hold ${MIN_CHOICES} to ${MAX_CHOICES} items, not ${count}`);
}

/**
 * The fault in a list of choices, or undefined: 2 to 300, none empty, each well-formed UTF-16, unique by code units.
 * Messages name places, never texts.
 */
export function choicesFault(choices: readonly string[]): DomainError | undefined {
  const wrongCount = choiceCountFault(choices.length);
  if (wrongCount !== undefined) return wrongCount;
  const first = new Map<string, number>();
  for (const [place, choice] of choices.entries()) {
    if (choice === '') return invalid(`choices[${place}] is empty`);
    if (!choice.isWellFormed()) return invalid(`choices[${place}] is not well-formed text: it holds a lone surrogate`);
    const earlier = first.get(choice);
    if (earlier !== undefined) return invalid(`choices[${place}] repeats choices[${earlier}]`);
    first.set(choice, place);
  }
  return undefined;
}
