/**
 * `POST /v1/systemone`: questions by name, `noul` (yes or no), `choice` and `score`, about a `state`. Texts may be any
 * JSON; what is not a string is read as its JSON.
 */
import { ERROR_TABLE, type ErrorReason } from '../domain/errors.ts';
import { type Path, Refused } from '../front/refused.ts';
import { type Answer, described, type Form, OPTIONS, QUESTIONS, question, said, textOf, YES_NO } from './question.ts';
import { type Fields, type Rule, record, variant } from './rules.ts';

const TEXT: Rule = { string: {}, object: 'any', array: 'any' };
const OPTIONAL: Rule = { ...TEXT, string: { empty: true }, null: true };
const TYPE: Rule = { string: {} };
const asked = (criteria: Fields, optional: Fields = {}): Rule =>
  record({ type: TYPE, ...criteria }, { instructions: OPTIONAL, ...optional });
const QUESTION = variant('type', {
  noul: asked({}, { criteria: { ...record({}, { true: OPTIONAL, false: OPTIONAL }), null: true } }),
  choice: asked({ criteria: { object: { each: OPTIONAL, ...OPTIONS } } }),
  score: asked({ criteria: { array: { of: TEXT, ...OPTIONS } } }),
  box: { refused: 'box questions are about images, and Umpire reads text alone' },
});
const RULE = record(
  {
    model: { string: {} },
    state: TEXT,
    questions: { object: { each: QUESTION, ...QUESTIONS } },
  },
  { assets: { refused: 'Umpire reads text alone: it takes no assets' } },
);

/** A body that keeps the rule. */
interface Body {
  readonly model: string;
  readonly state: unknown;
  readonly questions: Readonly<Record<string, Asking>>;
}
type Asking = { readonly instructions?: unknown } & (
  | { readonly type: 'noul'; readonly criteria?: { readonly true?: unknown; readonly false?: unknown } | null }
  | { readonly type: 'choice'; readonly criteria: Readonly<Record<string, unknown>> }
  | { readonly type: 'score'; readonly criteria: readonly unknown[] }
);

function optionsOf(asking: Asking, at: Path): readonly string[] {
  if (asking.type === 'choice') return Object.entries(asking.criteria).map((option) => described(...option));
  if (asking.type === 'score') return asking.criteria.map(textOf);
  const options = [described(YES_NO[0], asking.criteria?.true), described(YES_NO[1], asking.criteria?.false)];
  if (textOf(asking.instructions) === '' && options.every((option, i) => option === YES_NO[i]))
    throw new Refused('MISSING_FIELD', 'is missing, and there are no criteria', { path: [...at, 'instructions'] });
  return options;
}

function answerTo(asking: Asking, answer: Answer): object {
  const { type } = asking;
  if (type === 'noul') return { type, noul: answer.probabilities[0] };
  const names = Object.keys(asking.criteria);
  const keyed = (values: readonly unknown[]) => Object.fromEntries(names.map((name, i) => [name, values[i]]));
  const legend = type === 'score' ? { legend: keyed(asking.criteria) } : {};
  return { type, ...said(type, answer, names), ...legend, probabilities: keyed(answer.probabilities) };
}

/** Reasons whose status is not the service's own, and the form's words for statuses and for what is wrong. */
const STATUSES: Partial<Record<ErrorReason, number>> = {
  UNKNOWN_MODEL: 404,
  MODEL_DISABLED: 404,
  INPUT_TOKENS_EXCEEDED: 413,
  OVERLOADED: 529,
};
const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  404: 'not_found',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};
const PROBLEMS: Partial<Record<ErrorReason, string>> = { MISSING_FIELD: 'missing', UNKNOWN_FIELD: 'extra_forbidden' };

/** The form. */
export const SYSTEM_ONE: Form = {
  path: '/v1/systemone',
  rule: RULE,
  inputField: 'state',
  ask(body) {
    const { model, state, questions } = body as Body;
    return {
      model,
      input: textOf(state),
      questions: Object.entries(questions).map(([name, asking]) => {
        const at = ['questions', name];
        const asked = { instruction: textOf(asking.instructions), options: optionsOf(asking, at), at };
        return question(asking.type === 'noul' ? 'predicate' : asking.type, { ...asked, optionsField: 'criteria' });
      }),
    };
  },
  answer(body, { model, answers, inputTokens }) {
    const entries = Object.entries((body as Body).questions);
    return {
      model,
      answers: Object.fromEntries(entries.map(([name, asking], i) => [name, answerTo(asking, answers[i] as Answer)])),
      usage: { input_tokens: inputTokens, output_tokens: 0 },
    };
  },
  refuse({ reason, code, message, path }) {
    const status = STATUSES[reason] ?? ERROR_TABLE[reason].http;
    if (status === 400) {
      const type = PROBLEMS[reason] ?? code;
      return { status: 422, body: { detail: [{ loc: ['body', ...path], msg: message, type }] } };
    }
    const type = ERROR_TYPES[status] ?? (status < 500 ? 'api_usage_error' : 'server_error');
    return { status, body: { detail: { error_type: type, message } } };
  },
};
