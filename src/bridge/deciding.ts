/** Answers the questions of one request, a decision each, side by side. */
import { Turns } from '../front/places.ts';
import { Refused } from '../front/refused.ts';
import type { Terms, Umpire } from '../front/umpire.ts';
import type { Answer, Answers, Asked, Question } from './question.ts';

/** Decisions of one request at a time: what a large request has to wait for are its own. */
const QUESTIONS_AT_A_TIME = 16;

/**
 * The answers. `inputField`: what the input is called in the body, for errors. Once one question is refused the others
 * are cancelled, and the request is refused as it was. Throws Refused.
 */
export async function answersTo(asked: Asked, inputField: string, umpire: Umpire, terms: Terms): Promise<Answers> {
  const { model, input, questions } = asked;
  const stop = new AbortController();
  const signal = AbortSignal.any([terms.signal, stop.signal]);
  const own = new Turns(QUESTIONS_AT_A_TIME);
  let [revision, inputTokens] = ['', 0];
  const decide = async (question: Question): Promise<Answer> => {
    const { instruction, options } = question;
    const decision = await umpire
      .decide({ model, input, instruction, choices: [...options] }, { ...terms, signal })
      .catch((error: Refused) => {
        throw inPlace(error, question, inputField);
      });
    if (revision !== '' && decision.model !== revision)
      throw new Refused('MODEL_UNAVAILABLE', 'the model was replaced during the request', { retryAfter: 1 });
    revision = decision.model;
    inputTokens += decision.usage?.inputTokens ?? 0;
    const { choice = '', probabilities = {} } = decision.output ?? {};
    return { chosen: options.indexOf(choice), probabilities: options.map((option) => probabilities[option] as number) };
  };
  try {
    const answers = await Promise.all(questions.map((one) => own.run(() => decide(one))));
    return { model: revision, answers, inputTokens };
  } catch (error) {
    stop.abort();
    throw error;
  }
}

/** The error with the names that the service's fields have in the caller's body. */
function inPlace(refused: Refused, { at, optionsField }: Question, inputField: string): Refused {
  const { reason, message, path, retryAfter, cause } = refused;
  const places: Readonly<Record<string, Refused['path']>> = {
    input: [inputField],
    instruction: [...at, 'instructions'],
    choices: [...at, optionsField],
  };
  return new Refused(reason, message, { path: places[path?.[0] ?? ''] ?? path, retryAfter, cause });
}
