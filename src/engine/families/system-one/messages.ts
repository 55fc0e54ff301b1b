/**
 * Writes the bodies of requests, and reads the probabilities in answers. A request has one question, since some models
 * decide several jointly. The bodies are written as text: a JavaScript object moves names that are whole numbers to its
 * front, and a model's answer depends on the order in which it reads the choices.
 */
import { CallFailed, malformed } from '../remote/call-failed.ts';
import { finiteNumber, type JsonObject, listIn, objectOf } from '../remote/http/reading.ts';
import type { SystemOneVariant } from './options.ts';
import { halfDigitOf } from './rounding.ts';

/** One question to the server: its texts, and the choices in the order in which they are sent. */
export interface Question {
  readonly model: string;
  readonly state: string;
  readonly instructions: string;
  /** In the order in which the server is to read them. */
  readonly choices: readonly string[];
}

/** The name of the one question. */
const NAME = 'decision';
/** How far from 1 the sum of probabilities may be; further only if their rounding explains it. */
const SUM_SLACK = 0.05;

/** The body of a request, as JSON. */
export function bodyOf({ model, state, instructions, choices }: Question, variant: SystemOneVariant): string {
  const [modelText, stateText, instructionsText] = [model, state, instructions].map((text) => JSON.stringify(text));
  const names = choices.map((choice) => JSON.stringify(choice));
  if (variant === 'decisions') {
    const values = names.map((name) => `{"value":${name}}`);
    return (
      `{"model":${modelText},"input":${stateText},"questions":[{"type":"choice","name":"${NAME}",` +
      `"instructions":${instructionsText},"choices":[${values.join(',')}]}]}`
    );
  }
  const criteria = names.map((name) => `${name}:null`);
  return (
    `{"model":${modelText},"state":${stateText},"questions":{"${NAME}":{"type":"choice",` +
    `"instructions":${instructionsText},"criteria":{${criteria.join(',')}}}}}`
  );
}

/**
 * The probability of each choice, in the order given. What servers call `choice` and `confidence` is not read: it
 * follows from the probabilities, in ways that differ by server. Throws CallFailed: `malformed` unless each choice has
 * a probability, no other has one and they sum to 1 within their rounding; `refused` where the model would not answer,
 * or the server says that it did not read all.
 */
export function probabilitiesIn(answer: unknown, choices: readonly string[], variant: SystemOneVariant): Float64Array {
  const { answers, usage } = objectOf(answer);
  const found = variant === 'decisions' ? answerInList(answers) : answerByName(objectOf(answers));
  if (found.type === 'refusal') throw new CallFailed('refused', 'the model refused to answer', { blame: 'request' });
  if (found.type !== 'choice') throw malformed('the answer to the question is of another type than choice');
  refuseCut(usage);
  const given =
    variant === 'decisions' ? pairsIn(found.probabilities) : new Map(Object.entries(objectOf(found.probabilities)));
  if (given.size !== choices.length) {
    throw malformed(`the answer has probabilities of ${given.size} choices, not ${choices.length}`);
  }
  const probabilities = Float64Array.from(choices, (choice) => {
    if (!given.has(choice)) throw malformed('the answer lacks the probability of a choice');
    const p = finiteNumber(given.get(choice), 'probability');
    if (p < 0 || p > 1 + Number.EPSILON * choices.length) throw malformed('a probability is not within 0 to 1');
    return p;
  });
  const sum = probabilities.reduce((total, p) => total + p, 0);
  const slack = Math.max(SUM_SLACK, choices.length * halfDigitOf(probabilities));
  if (Math.abs(sum - 1) > slack) throw malformed(`the probabilities sum to ${sum.toFixed(3)}, not to 1`);
  return probabilities;
}

function answerInList(answers: unknown): JsonObject {
  const all = listIn(answers, 'answers').map(objectOf);
  const [found] = all;
  if (found === undefined || all.length !== 1) throw malformed(`there are ${all.length} answers to one question`);
  if (found.name !== undefined && found.name !== NAME) throw malformed('the answer is to another question');
  return found;
}

function answerByName(answers: JsonObject): JsonObject {
  if (!Object.hasOwn(answers, NAME)) throw malformed('there is no answer to the question');
  return objectOf(answers[NAME]);
}

function pairsIn(probabilities: unknown): ReadonlyMap<unknown, unknown> {
  const pairs = listIn(probabilities, 'probabilities').map(objectOf);
  const found = new Map(pairs.map(({ value, probability }) => [value, probability]));
  if (found.size !== pairs.length) throw malformed('the answer has a choice twice');
  return found;
}

/** Some servers cut a text that is too long, and say so beside their answer. */
function refuseCut(usage: unknown): void {
  if (typeof usage !== 'object' || usage === null) return;
  const { truncated, state_tokens_dropped: dropped } = usage as JsonObject;
  if (truncated !== true && !(typeof dropped === 'number' && dropped > 0)) return;
  throw new CallFailed('refused', 'the server did not read the whole text', { blame: 'request', tooLong: {} });
}
