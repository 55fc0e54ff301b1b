/** Choices in a file: a JSON array of texts, or one choice a line. */
import { choicesFault } from '../domain/catalog-rules.ts';

/** The choices in a file's text. Throws Error if it cannot be read, and DomainError if a catalog may not have them. */
export function choicesFrom(text: string): readonly string[] {
  const choices: unknown = text.trimStart().startsWith('[')
    ? JSON.parse(text)
    : text.split(/\r?\n/).filter((line) => line !== '');
  if (!Array.isArray(choices) || !choices.every((choice) => typeof choice === 'string')) {
    throw new Error('the choices must be a JSON array of texts, or one a line');
  }
  const fault = choicesFault(choices);
  if (fault !== undefined) throw fault;
  return choices;
}
