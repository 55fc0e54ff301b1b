/**
 * OpenAI's `POST /v1/decisions`: a list of questions, `predicate`, `choice` and `score`, about an `input`, a text or a
 * conversation. Its errors are in the envelope that the service has, too.
 */
import { ERROR_TABLE } from '../domain/errors.ts';
import { Refused } from '../front/refused.ts';
import { type Answer, described, type Form, OPTIONS, QUESTIONS, question, said, YES_NO } from './question.ts';
import { type Fields, oneOf, type Rule, record, variant } from './rules.ts';

const NAME: Rule = { string: {} };
const TEXT: Rule = { string: { empty: true } };
const OPTIONAL: Rule = { ...TEXT, null: true };

/** Parts of a text, by their type. What a caller says about caches changes no answer. */
const PARTS = {
  input_text: record(
    { type: NAME, text: TEXT },
    { prompt_cache_breakpoint: { ...record({ mode: oneOf('explicit') }), null: true } },
  ),
  input_json: record({ type: NAME, data: { object: 'any', array: 'any' } }),
  input_image: { refused: 'Umpire reads text alone: it takes no images' },
  output_text: record({ type: NAME, text: TEXT }),
  refusal: record({ type: NAME, refusal: TEXT }),
} as const satisfies Fields;
const parts = (...types: readonly (keyof typeof PARTS)[]): Rule => ({
  ...TEXT,
  array: { of: variant('type', Object.fromEntries(types.map((type) => [type, PARTS[type]]))), least: 1 },
});

/** What a conversation is made of: messages, which need no type, calls and their results. */
const message = (content: Rule, optional: Fields = {}): Rule =>
  record({ role: NAME, content }, { type: NAME, ...optional });
const MESSAGE = variant('role', {
  user: message(parts('input_text', 'input_image', 'input_json')),
  developer: message(parts('input_text')),
  system: message(parts('input_text')),
  assistant: message(parts('output_text', 'refusal'), {
    phase: { ...oneOf('commentary', 'final_answer'), null: true },
  }),
});
const ITEM = { type: NAME, call_id: NAME };
const STATE = { id: OPTIONAL, status: { ...oneOf('in_progress', 'completed', 'incomplete'), null: true } } as const;
const CALL = { ...STATE, namespace: OPTIONAL };
const OUTPUT = record({ ...ITEM, output: parts('input_text', 'input_image') }, STATE);
const CONVERSATION = variant(
  'type',
  {
    message: MESSAGE,
    function_call: record({ ...ITEM, name: NAME, arguments: TEXT }, CALL),
    custom_tool_call: record({ ...ITEM, name: NAME, input: TEXT }, CALL),
    function_call_output: OUTPUT,
    custom_tool_call_output: OUTPUT,
  },
  MESSAGE,
);

const asked = (options: Fields = {}): Rule =>
  record(
    { type: NAME, instructions: parts('input_text', 'input_image', 'input_json'), ...options },
    { name: OPTIONAL },
  );
const options = (label: Fields): Rule => ({ array: { of: record(label, { description: OPTIONAL }), ...OPTIONS } });
const QUESTION = variant('type', {
  predicate: asked(),
  choice: asked({ choices: options({ value: { string: {}, boolean: true } }) }),
  score: asked({ levels: options({ label: NAME }) }),
});
const RULE = record(
  {
    model: NAME,
    input: { ...NAME, array: { of: CONVERSATION, least: 1 } },
    questions: { array: { of: QUESTION, ...QUESTIONS } },
  },
  {
    prompt_cache_key: OPTIONAL,
    prompt_cache_options: {
      ...record({}, { mode: { ...oneOf('implicit', 'explicit'), null: true }, ttl: oneOf('30m') }),
      null: true,
    },
    safety_identifier: OPTIONAL,
  },
);

/** A body that keeps the rule. */
interface Body {
  readonly model: string;
  readonly input: string | readonly Item[];
  readonly questions: readonly Asking[];
}
type Text = string | readonly { readonly text?: string; readonly refusal?: string; readonly data?: unknown }[];
type Item =
  | { readonly role: string; readonly content: Text }
  | { readonly call_id: string; readonly name: string; readonly arguments?: string; readonly input?: string }
  | { readonly call_id: string; readonly output: Text };
interface Option {
  readonly value: string | boolean;
  readonly label: string;
  readonly description?: string | null;
}
interface Asking {
  readonly type: 'predicate' | 'choice' | 'score';
  readonly name?: string | null;
  readonly instructions: Text;
  readonly choices?: readonly Option[];
  readonly levels?: readonly Option[];
}

/** Parts are read one after another, a line each; JSON as its text. */
const textOf = (text: Text): string =>
  typeof text === 'string'
    ? text
    : text.map((part) => part.text ?? part.refusal ?? JSON.stringify(part.data)).join('\n');

/** A conversation is read with who said what; a single message of a user is read like a text. */
function inputOf(input: string | readonly Item[]): string {
  if (typeof input === 'string') return input;
  const [first] = input;
  if (input.length === 1 && first !== undefined && 'role' in first && first.role === 'user')
    return textOf(first.content);
  const calls = new Map<string, string>();
  const read = input.map((item, i) => {
    if ('role' in item) return `${item.role}: ${textOf(item.content)}`;
    if ('name' in item) {
      calls.set(item.call_id, item.name);
      return `call of ${item.name}: ${item.arguments ?? item.input}`;
    }
    const path = ['input', i, 'call_id'];
    if (!calls.has(item.call_id)) throw new Refused('INVALID_VALUE', 'no call before it has that id', { path });
    return `result of ${calls.get(item.call_id)}: ${textOf(item.output)}`;
  });
  return read.join('\n\n');
}

function answerTo({ type, name = null, choices = [], levels = [] }: Asking, answer: Answer): object {
  const all = answer.probabilities;
  if (type === 'predicate') return { type, name, probability: all[0] };
  const values = choices.map(({ value }) => value);
  const probabilities =
    type === 'choice'
      ? values.map((value, i) => ({ value, probability: all[i] }))
      : levels.map(({ label }, value) => ({ value, label, probability: all[value] }));
  return { type, name, ...said(type, answer, values), probabilities };
}

/** The form. */
export const OPENAI: Form = {
  path: '/v1/decisions',
  rule: RULE,
  inputField: 'input',
  ask(body) {
    const { model, input, questions } = body as Body;
    const text = inputOf(input);
    if (text === '') throw new Refused('INVALID_VALUE', 'must have a text that is not empty', { path: ['input'] });
    return {
      model,
      input: text,
      questions: questions.map(({ type, instructions, choices, levels }, i) =>
        question(type, {
          instruction: textOf(instructions),
          options:
            choices?.map(({ value, description }) => described(String(value), description)) ??
            levels?.map(({ label, description }) => described(label, description)) ??
            YES_NO,
          at: ['questions', i],
          optionsField: type === 'score' ? 'levels' : 'choices',
        }),
      ),
    };
  },
  answer(body, { model, answers, inputTokens }) {
    return {
      model,
      answers: (body as Body).questions.map((asking, i) => answerTo(asking, answers[i] as Answer)),
      usage: {
        input_tokens: inputTokens,
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens: 0,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: inputTokens,
      },
    };
  },
  refuse({ reason, code, message: words, param }) {
    const { http, type } = ERROR_TABLE[reason];
    const message = param === null ? words : `${param}: ${words}`;
    if (reason !== 'UNKNOWN_MODEL' && reason !== 'MODEL_DISABLED')
      return { status: http, body: { error: { message, type, code, param } } };
    return { status: 404, body: { error: { message: words, type, code: 'model_not_found', param: 'model' } } };
  },
};
