/** Described choices as the model reads them: other texts than the choices, and in code-unit order another order. */
import { textOfChoice } from '../stores/catalog-additions.ts';

/** What is read in place of a catalog's choices. */
export interface ReadChoices {
  /** In code-unit order. */
  readonly texts: readonly string[];
  /** Brings probabilities in the order of the texts into the code-unit order of the choices. */
  inOrder(probabilities: Float64Array): Float64Array;
}

/** The texts that are read for `choices`, which are in code-unit order. */
export function createReadChoices(
  choices: readonly string[],
  descriptions: Readonly<Record<string, string>>,
): ReadChoices {
  const texts = choices.map((choice) => textOfChoice(choice, descriptions));
  const sorted = texts.toSorted();
  const places = new Map(sorted.map((text, place) => [text, place]));
  const order = Int32Array.from(texts, (text) => places.get(text) as number);
  return {
    texts: sorted,
    inOrder: (probabilities) => Float64Array.from(order, (place) => probabilities[place] as number),
  };
}
