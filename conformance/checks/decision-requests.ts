/** Contract 2.1, 7 and 8: the rules of a request for a decision. Each row is a kind of wrong request, and its error. */
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { DECISION_PROPERTIES, MAX_CHOICES, MIN_CHOICES } from '../bounds.ts';
import type { Check } from '../check.ts';
import { holds, type Refusal, refuses } from '../expect.ts';
import type { Kit, ListedModel, Question } from '../kit.ts';
import { Skipped } from '../outcome.ts';
import { type WrongMessage, wrongMessages } from '../wrong-messages.ts';
import { numbered } from './decisions.ts';

/** A kind of wrong request. */
interface WrongQuestion {
  readonly id: string;
  readonly section?: string;
  readonly promise: string;
  readonly tried: string;
  /** The bodies, each of which gets the error. */
  readonly bodies: (question: Question, model: ListedModel) => readonly unknown[];
  readonly refusal: Omit<Refusal, 'status'> & { readonly status?: number };
  /** What the error's message must contain. */
  readonly says?: (model: ListedModel) => RegExp;
}

const without = (question: Question, name: keyof Question): object => {
  const { [name]: _, ...rest } = question;
  return rest;
};

/** Characters of a text that is sent: a longer one could exceed the 1 MiB of a body and get another error. */
const MAX_TEXT = 900_000;

/** A text of more tokens than a limit, in any tokenizer that keeps its word. Throws Skipped if no body holds it. */
export function tooLong(limit: number): string {
  const text = 'word '.repeat(limit + 1);
  if (text.length > MAX_TEXT) throw new Skipped(`${limit} tokens do not fit into a request`);
  return text;
}

/** Texts that name no served model, some of which look much like the name of one. */
const unservedNames = (id: string): readonly string[] => [
  ...['no-such-model', `${id}@no-such-revision`, `${id}@`, `${id}@r1@r1`, '@r1', ` ${id} `, `../${id}`, `${id}\0`],
  ...['NO MODEL', '__proto__', 'constructor', '-', '\u{1f600}', 'm'.repeat(100_000)],
];

/** The wrong requests that differ only in the field that is wrong. */
const FIELD_ROWS = (['model', 'input', 'instruction'] as const).flatMap((name): readonly WrongQuestion[] => [
  {
    id: `requests.missing-${name}`,
    promise: `${name} is required`,
    tried: `a question without ${name}`,
    bodies: (question) => [without(question, name)],
    refusal: { code: 'missing_field', param: name },
  },
  {
    id: `requests.empty-${name}`,
    promise: `${name} has at least one character`,
    tried: `${name} is ""`,
    bodies: (question) => [{ ...question, [name]: '' }],
    refusal: { code: 'invalid_value', param: name },
  },
  {
    id: `requests.type-of-${name}`,
    promise: `${name} is a string; nothing is converted`,
    tried: `${name} is null, 1, true, false, [], a list and {}`,
    bodies: (question) => [null, 1, true, false, [], ['x'], {}].map((value) => ({ ...question, [name]: value })),
    refusal: { code: 'invalid_type', param: name },
  },
]);

const ROWS: readonly WrongQuestion[] = [
  ...FIELD_ROWS,
  {
    id: 'requests.type-of-choices',
    promise: 'choices is a list of strings',
    tried: 'choices is null, a number, true, a string, objects, and holds a number, true, null, an object and a list',
    bodies: (question) =>
      [
        ...[null, 1, true, 'billing', {}, { 0: 'a', 1: 'b', length: 2 }],
        ...[null, 1, true, {}, ['b']].map((item) => ['a', item]),
      ].map((choices) => ({ ...question, choices })),
    refusal: { code: 'invalid_type', param: 'choices' },
  },
  {
    id: 'requests.type-of-catalog',
    promise: 'catalog is a string',
    tried: 'catalog is null, 1, true, [] and {}',
    bodies: (question) => [null, 1, true, [], {}].map((catalog) => ({ ...without(question, 'choices'), catalog })),
    refusal: { code: 'invalid_type', param: 'catalog' },
  },
  {
    id: 'requests.unknown-property',
    promise: 'a property that the contract does not have is refused, whatever its value',
    tried:
      'temperature, Model, constructor, __proto__, toString, hasOwnProperty, $typeName and an empty name beside a valid question',
    bodies: (question) =>
      ['temperature', 'Model', 'constructor', '__proto__', 'toString', 'hasOwnProperty', '$typeName', ''].map(
        (name) => ({
          ...question,
          [name]: null,
        }),
      ),
    refusal: { code: 'unknown_field' },
  },
  {
    id: 'requests.both',
    promise: 'choices and catalog exclude each other, whatever their values',
    tried:
      'both, catalog beside an empty and a null choices, a null catalog beside choices, both null, and both numbers',
    bodies: (question) => [
      { ...question, catalog: 'c' },
      { ...question, catalog: 'c', choices: [] },
      { ...question, catalog: 'c', choices: null },
      { ...question, catalog: null },
      { ...question, catalog: null, choices: null },
      { ...question, catalog: 1, choices: 1 },
    ],
    refusal: { code: 'choices_or_catalog', param: 'choices' },
  },
  {
    id: 'requests.empty-catalog',
    promise: 'catalog has at least one character',
    tried: 'catalog is ""',
    bodies: (question) => [{ ...without(question, 'choices'), catalog: '' }],
    refusal: { code: 'invalid_value', param: 'catalog' },
  },
  {
    id: 'requests.neither',
    promise: 'one of choices and catalog is there',
    tried: 'a question without either',
    bodies: (question) => [without(question, 'choices')],
    refusal: { code: 'choices_or_catalog', param: 'choices' },
  },
  {
    id: 'requests.few-choices',
    promise: `there are at least ${MIN_CHOICES} choices`,
    tried: 'no choice and one',
    bodies: (question) => [[], ['billing']].map((choices) => ({ ...question, choices })),
    refusal: { code: 'invalid_choices', param: 'choices' },
  },
  {
    id: 'requests.many-choices',
    promise: `there are at most ${MAX_CHOICES} choices`,
    tried: `${MAX_CHOICES + 1} choices`,
    bodies: (question) => [{ ...question, choices: numbered(MAX_CHOICES + 1) }],
    refusal: { code: 'invalid_choices', param: 'choices' },
  },
  {
    id: 'requests.repeated-choice',
    promise: 'choices are unique',
    tried: 'one choice twice',
    bodies: (question) => [{ ...question, choices: ['billing', 'shipping', 'billing'] }],
    refusal: { code: 'invalid_choices', param: 'choices' },
  },
  {
    id: 'requests.empty-choice',
    promise: 'no choice is empty',
    tried: 'an empty choice among others',
    bodies: (question) => [{ ...question, choices: ['billing', ''] }],
    refusal: { code: 'invalid_choices', param: 'choices' },
  },
  {
    id: 'requests.lone-surrogate-choice',
    promise: 'a choice that is not Unicode text is refused, not repaired',
    tried: 'a choice with a lone surrogate',
    bodies: (question) => [{ ...question, choices: ['billing', 'a\ud800'] }],
    refusal: { code: 'invalid_choices', param: 'choices' },
  },
  {
    id: 'requests.lone-surrogate-input',
    promise: 'an input that is not Unicode text is refused, not repaired',
    tried: 'an input with a lone surrogate',
    bodies: (question) => [{ ...question, input: 'a\ud800' }],
    refusal: { code: 'invalid_value', param: 'input' },
  },
  {
    id: 'requests.model-limit-of-choices',
    section: '8',
    promise: 'there are at most as many choices as the model’s limit',
    tried: 'one choice more than limits.choices, where that is less than the contract’s',
    bodies: (question, { limits }) => {
      if (limits.choices >= MAX_CHOICES) throw new Skipped('the model takes as many choices as the contract');
      return [{ ...question, choices: numbered(limits.choices + 1) }];
    },
    refusal: { code: 'too_many_choices', param: 'choices' },
  },
  {
    id: 'requests.long-input',
    section: '8',
    promise: 'an input of more tokens than the model’s limit is refused, never cut, and the message names the limit',
    tried: 'limits.input_tokens + 1 words as the input and as the instruction, and an input of 900,000 characters',
    bodies: (question, { limits }) => [
      { ...question, input: tooLong(limits.input_tokens) },
      { ...question, instruction: tooLong(limits.input_tokens) },
      { ...question, input: 'word '.repeat(MAX_TEXT / 5) },
    ],
    refusal: { code: 'input_tokens_exceeded', param: 'input' },
    says: ({ limits }) => new RegExp(`\\b${limits.input_tokens}\\b`),
  },
  {
    id: 'requests.long-choice',
    section: '8',
    promise: 'a choice of more tokens than the model’s limit is refused, never cut, and the message names the limit',
    tried: 'a choice of limits.candidate_tokens + 1 words',
    bodies: (question, { limits }) => [{ ...question, choices: ['billing', tooLong(limits.candidate_tokens)] }],
    refusal: { code: 'candidate_tokens_exceeded', param: 'choices' },
    says: ({ limits }) => new RegExp(`\\b${limits.candidate_tokens}\\b`),
  },
  {
    id: 'requests.unknown-model',
    promise: 'a model or revision that is not served is refused',
    tried: 'no-such-model, revisions that do not exist, and texts that cannot be a name',
    bodies: (question) => unservedNames(question.model).map((model) => ({ ...question, model })),
    refusal: { code: 'unknown_model', param: 'model' },
  },
  {
    id: 'requests.catalog-without-key',
    section: '5',
    promise: 'a catalog needs its owner’s key: without a key the answer is 401',
    tried: 'a question with a catalog and no key',
    bodies: (question) => [{ ...without(question, 'choices'), catalog: 'any' }],
    refusal: { status: 401, code: 'authentication_required' },
  },
  {
    id: 'requests.unknown-first',
    promise: 'of several faults an unknown property is reported first',
    tried: 'an unknown property beside a wrong type and missing fields',
    bodies: () => [{ model: 1, extra: 1 }, { extra: 1 }],
    refusal: { code: 'unknown_field', param: 'extra' },
  },
  {
    id: 'requests.order-of-faults',
    promise: 'of several faults the first in the contract’s order of fields is reported',
    tried: 'an empty instruction beside one choice',
    bodies: (question) => [{ ...question, instruction: '', choices: ['billing'] }],
    refusal: { code: 'invalid_value', param: 'instruction' },
  },
  {
    id: 'requests.other-dialect',
    promise: 'a request in the format of another service gets an error that names the fields of this one',
    tried: 'a body with questions and state',
    bodies: () => [{ questions: [], state: {} }],
    refusal: { code: 'unknown_field', param: 'questions' },
    says: () => /model, input, instruction/,
  },
];

/** The check that a decision with a listed model that is not ready gets the error of its status. */
const statusRow = (status: string, refusal: Refusal): Check => ({
  id: `requests.${status}-model`,
  section: '3.1',
  promise: `a model that is ${status} is ${refusal.status} ${refusal.code}`,
  tried: `a question to a model that the list shows as ${status}, if there is one`,
  async run(kit) {
    const found = (await kit.models()).find((model) => model.status === status);
    if (found === undefined) throw new Skipped(`no model is ${status}`);
    const body = JSON.stringify({ ...(await kit.question()), model: found.id });
    const answer = await kit.http1({ path: '/v1/decisions', body, once: true });
    refuses(answer, refusal);
    if (refusal.status === 503) {
      holds(/^[1-9]\d*$/.test(String(answer.headers['retry-after'])), `Retry-After: ${answer.headers['retry-after']}`);
    }
  },
});

/** The checks of the rules that a request for a decision must follow. */
export const DECISION_REQUEST_CHECKS: readonly Check[] = [
  ...ROWS.map(
    ({ id, section = '7', promise, tried, bodies, refusal, says }): Check => ({
      id,
      section,
      promise,
      tried,
      async run(kit) {
        const model = await kit.model();
        for (const body of bodies(await kit.question(), model)) {
          // The error names the first property that the contract does not have.
          const param =
            refusal.code === 'unknown_field' && refusal.param === undefined ? unknownIn(body) : refusal.param;
          const message = refuses(await kit.decide(body), { status: 400, ...refusal, param: param ?? null });
          const wanted = says?.(model);
          holds(wanted === undefined || wanted.test(message), `the message '${message}' does not say ${wanted}`);
        }
      },
    }),
  ),
  statusRow('unavailable', { status: 503, code: 'model_unavailable', type: 'model_error', param: 'model' }),
  statusRow('disabled', { status: 400, code: 'model_disabled', param: 'model' }),
];

/** The wrong requests that a protobuf message can express. */
export async function wrongQuestions(kit: Kit): Promise<readonly WrongMessage[]> {
  const [question, model] = [await kit.question(), await kit.model()];
  const { input } = DecisionService.method.createDecision;
  return ROWS.flatMap(({ bodies, refusal }) => wrongMessages(input, () => bodies(question, model), refusal));
}

function unknownIn(body: unknown): string | null {
  return Object.keys(body as object).find((name) => !DECISION_PROPERTIES.includes(name)) ?? null;
}
