/** Contract 2.2 to 2.4 and 4.1: what a decision contains, and that it depends on nothing but its request. */

import { jsonOf, objectAt, show } from '../answer.ts';
import { MAX_CHOICES, MIN_CHOICES } from '../bounds.ts';
import type { Check } from '../check.ts';
import { hasStatus, holds, matches, same } from '../expect.ts';
import { ODD_CHOICES } from '../odd-choices.ts';

/** Numbered choices, which have few tokens in every tokenizer. */
export function numbered(count: number): readonly string[] {
  return Array.from({ length: count }, (_, place) => `topic ${place + 1}`);
}

/** The checks of decisions. */
export const DECISION_CHECKS: readonly Check[] = [
  {
    id: 'decisions.shape',
    section: '2.2',
    promise: 'a decision has id, object, model, output and usage, and nothing else, without a key',
    tried: 'POST /v1/decisions',
    async run(kit) {
      const answer = await kit.decide(await kit.question());
      hasStatus(answer, 200);
      const body = jsonOf(answer);
      same('properties', Object.keys(body).toSorted(), ['id', 'model', 'object', 'output', 'usage']);
      matches('id', body.id, /^dec_./);
      same('object', body.object, 'decision');
      const output = objectAt(body, 'output');
      same('properties of output', Object.keys(output).toSorted(), ['choice', 'confidence', 'probabilities']);
      same('properties of usage', Object.keys(objectAt(body, 'usage')), ['input_tokens']);
    },
  },
  {
    id: 'decisions.id',
    section: '2.2',
    promise: 'the identifier of a decision is unique',
    tried: 'the same question three times',
    async run(kit) {
      const ids = [];
      for (let turn = 0; turn < 3; turn += 1) ids.push(jsonOf(await kit.decide(await kit.question())).id);
      same('different ids', new Set(ids).size, 3);
    },
  },
  {
    id: 'decisions.choice',
    section: '4.1',
    promise: 'the choice is one of those that were sent, the most probable; of equal ones the first in code-unit order',
    tried: 'a decision of three and one of ten choices',
    async run(kit) {
      const question = await kit.question();
      for (const choices of [question.choices, numbered(10)]) {
        const { choice, probabilities } = await kit.decision({ ...question, choices });
        holds(choices.includes(choice), `'${choice}' was not among the choices`);
        same('choice', choice, winnerOf(probabilities));
      }
    },
  },
  {
    id: 'decisions.confidence',
    section: '2.3',
    promise: 'the confidence is the probability of the choice',
    tried: 'a decision',
    async run(kit) {
      const { choice, confidence, probabilities } = await kit.decision(await kit.question());
      same('confidence', confidence, probabilities[choice]);
    },
  },
  {
    id: 'decisions.probabilities',
    section: '4.1',
    promise: 'there is one probability for each choice, under the string as it was sent, and no other',
    tried: 'a decision of three choices',
    async run(kit) {
      const question = await kit.question();
      const { probabilities } = await kit.decision(question);
      same('keys', Object.keys(probabilities).toSorted(), [...question.choices].sort());
    },
  },
  {
    id: 'decisions.distribution',
    section: '2.3',
    promise: 'the probabilities have six decimals, none is 0, and they sum to exactly 1',
    tried: 'decisions of 2, 3, 7 and 50 choices',
    async run(kit) {
      const question = await kit.question();
      const { choices: most } = (await kit.model()).limits;
      for (const count of [2, 3, 7, 50]) {
        const choices = numbered(Math.min(count, most));
        const fault = distributionFault((await kit.decision({ ...question, choices })).probabilities);
        holds(fault === undefined, `${choices.length} choices: ${fault}`);
      }
    },
  },
  {
    id: 'decisions.model',
    section: '2.2',
    promise: 'the answer names the model with its revision, and asking for that revision gives the same numbers',
    tried: 'a decision, then the same question with the model that it names',
    async run(kit) {
      const question = await kit.question();
      const first = await kit.decision(question);
      holds(first.model.startsWith(`${question.model}@`), `model: ${show(first.model)} has no revision`);
      same('decision', await kit.decision({ ...question, model: first.model }), first);
    },
  },
  {
    id: 'decisions.usage',
    section: '2.4',
    promise: 'usage counts the input tokens: a whole number within the model’s limit, more for a longer input',
    tried: 'a decision on an input, and one on the same input twice over',
    async run(kit) {
      const question = await kit.question();
      const { input_tokens: limit } = (await kit.model()).limits;
      const { inputTokens } = await kit.decision(question);
      holds(Number.isInteger(inputTokens) && inputTokens >= 0 && inputTokens <= limit, `input_tokens: ${inputTokens}`);
      const input = `${question.input} ${question.input}`;
      const { inputTokens: twice } = await kit.decision({ ...question, input });
      holds(twice > inputTokens, `${twice} tokens for twice the input of ${inputTokens}`);
    },
  },
  {
    id: 'decisions.repeatable',
    section: '9',
    promise: 'the same request gets the same answer',
    tried: 'the same question three times',
    async run(kit) {
      const question = { ...(await kit.question()), input: 'The parcel never came' };
      const first = await kit.decision(question);
      for (let turn = 0; turn < 2; turn += 1) same('decision', await kit.decision(question), first);
    },
  },
  {
    id: 'decisions.order',
    section: '4.1',
    promise: 'the order of the choices never matters',
    tried: 'a question, and the same with its choices in other orders',
    async run(kit) {
      const question = await kit.question();
      const wanted = await kit.decision(question);
      const [first = '', ...others] = question.choices;
      for (const choices of [question.choices.toReversed(), [...others, first]]) {
        same('decision', await kit.decision({ ...question, choices }), wanted);
      }
    },
  },
  {
    id: 'decisions.neighbours',
    section: '4.1',
    promise: 'other decisions at the same time never matter',
    tried: 'five different questions one by one, then at once',
    async run(kit) {
      const question = await kit.question();
      const questions = ['', ' again', ' and again', ' so please help', ' thank you'].map((end) => ({
        ...question,
        input: `Is anybody there?${end}`,
      }));
      const alone = [];
      for (const each of questions) alone.push(await kit.decision(each));
      const answers = await Promise.all(questions.map((each) => kit.decide(each)));
      same(
        'decisions',
        answers.map((answer) => kit.decided(answer)),
        alone,
      );
    },
  },
  {
    id: 'decisions.byte-for-byte',
    section: '2.3',
    promise: 'choices are returned byte for byte, whatever they contain',
    tried: `${ODD_CHOICES.length} odd choices: __proto__, 10, spaces at either end, two spellings of é, controls, special tokens`,
    async run(kit) {
      const choices = ODD_CHOICES.slice(0, (await kit.model()).limits.choices);
      const { probabilities } = await kit.decision({ ...(await kit.question()), choices });
      same('keys', Object.keys(probabilities).toSorted(), choices.toSorted());
    },
  },
  {
    id: 'decisions.bounds',
    section: '8',
    promise: 'two choices are accepted, and as many as the model’s limit',
    tried: 'a decision of 2 choices and one of limits.choices',
    async run(kit) {
      const question = await kit.question();
      for (const count of [MIN_CHOICES, Math.min((await kit.model()).limits.choices, MAX_CHOICES)]) {
        const answer = await kit.decide({ ...question, choices: numbered(count) });
        same(`probabilities of ${count} choices`, Object.keys(kit.decided(answer).probabilities).length, count);
      }
    },
  },
  {
    id: 'decisions.key',
    section: '5',
    promise: 'a key is accepted where none is needed, and changes nothing in the answer',
    tried: 'a decision without and with the key',
    needs: ['key'],
    async run(kit) {
      const question = await kit.question();
      const wanted = await kit.decision(question);
      same('decision', await kit.decision(question, kit.key), wanted);
    },
  },
];

/** The units of a probability: contract 2.3 gives it six decimals. */
const MILLION = 1_000_000;

/**
 * What is wrong with probabilities, which must have six decimals each, none be 0, and sum to exactly 1; or undefined.
 */
function distributionFault(probabilities: Readonly<Record<string, unknown>>): string | undefined {
  let sum = 0;
  for (const value of Object.values(probabilities)) {
    if (typeof value !== 'number' || !(value > 0 && value <= 1)) return `${value} is not a probability above 0`;
    const units = Math.round(value * MILLION);
    if (units / MILLION !== value) return `${value} has more than six decimals`;
    sum += units;
  }
  return sum === MILLION ? undefined : `they sum to ${sum / MILLION}`;
}

/** The most probable choice; of equal ones the first in code-unit order. */
function winnerOf(probabilities: Readonly<Record<string, number>>): string | undefined {
  const choices = Object.keys(probabilities).toSorted();
  const most = Math.max(...choices.map((choice) => probabilities[choice] ?? 0));
  return choices.find((choice) => probabilities[choice] === most);
}
