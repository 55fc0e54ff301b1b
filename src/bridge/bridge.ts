/** What the bridge serves: both forms, the models as both name them, and its own health. */
import { type Model, ModelStatus } from '../../gen/umpire/v1/model_service_pb.ts';
import type { Metrics } from '../front/metrics.ts';
import { Turns } from '../front/places.ts';
import type { Exchange, Reply, Site } from '../front/port.ts';
import { Refused } from '../front/refused.ts';
import type { Terms, Umpire } from '../front/umpire.ts';
import { readJson } from './json.ts';
import { OPENAI } from './openai.ts';
import type { Answer, Answers, Asked, Form, Question } from './question.ts';
import { checkBody } from './rules.ts';
import { SYSTEM_ONE } from './system-one.ts';

/** What an operator decides. */
export interface BridgeOptions {
  /** Names that clients may use for models, beside the models' own. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Keys are passed on as they come; or every request needs one; or they are dropped, where the service has none. */
  readonly keys: 'pass' | 'require' | 'drop';
}

const FORMS: ReadonlyMap<string, Form> = new Map([SYSTEM_ONE, OPENAI].map((form) => [form.path, form]));
const MODEL = /^\/v1\/models\/([^/]+)$/;

const methodOf = (path: string): string => (FORMS.has(path) ? 'POST' : 'GET');

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** The site. */
export class BridgeSite implements Site {
  /** TypeSafe's clients look for the id in the second. */
  readonly idHeaders = ['x-request-id', 'x-typesafe-request-id'];
  readonly #options: BridgeOptions;
  readonly #umpire: Umpire;
  readonly #metrics: Metrics;

  constructor(options: BridgeOptions, umpire: Umpire, metrics: Metrics) {
    this.#options = options;
    this.#umpire = umpire;
    this.#metrics = metrics;
  }

  async serve(exchange: Exchange): Promise<Reply> {
    const { request, path } = exchange;
    const form = FORMS.get(path);
    if (this.routeOf(path) === undefined) throw new Refused('ROUTE_NOT_FOUND', 'no resource has this path');
    if (request.method !== methodOf(path))
      throw new Refused('METHOD_NOT_ALLOWED', `this is asked with ${methodOf(path)}`);
    if (form !== undefined) return this.#decide(form, exchange);
    const terms = this.#termsOf(exchange.terms);
    const { aliases } = this.#options;
    const name = MODEL.exec(path)?.[1];
    if (name === undefined) return { status: 200, body: modelList(await this.#umpire.models(terms), aliases) };
    const model = await this.#umpire.model(aliases.get(decoded(name)) ?? decoded(name), terms);
    return { status: 200, body: modelDescriptor(decoded(name), model) };
  }

  refuse(path: string, refused: Refused): Reply {
    const headers: Reply['headers'] = refused.reason === 'METHOD_NOT_ALLOWED' ? { allow: methodOf(path) } : {};
    return { ...(FORMS.get(path) ?? OPENAI).refuse(refused), headers };
  }

  routeOf(path: string): string | undefined {
    if (MODEL.test(path)) return '/v1/models/{model}';
    return FORMS.has(path) || path === '/v1/models' ? path : undefined;
  }

  async #decide(form: Form, { terms, body }: Exchange): Promise<Reply> {
    const own = this.#termsOf(terms);
    const value = readJson(await body());
    checkBody(value, form.rule);
    const asked = form.ask(value);
    const model = this.#options.aliases.get(asked.model) ?? asked.model;
    const answers = await answersTo({ ...asked, model }, form.inputField, this.#umpire, own);
    this.#metrics.decisions(answers.answers.length);
    return { status: 200, body: form.answer(value, answers) };
  }

  #termsOf(terms: Terms): Terms {
    const { authorization, ...others } = terms.headers;
    if (this.#options.keys === 'drop') return { ...terms, headers: others };
    if (this.#options.keys === 'require' && authorization === undefined)
      throw new Refused('AUTHENTICATION_REQUIRED', 'a key is needed: Authorization: Bearer <key>');
    return terms;
  }
}

// `GET /v1/models` in both forms at once: `data` is OpenAI's list, `models` is TypeSafe's. The service does not say
// when a model was made, so both dates are those of the epoch.

/** One model as OpenAI's clients read it, under the name that was asked for. */
const modelDescriptor = (name: string, { ownedBy }: Model): object => ({
  id: name,
  object: 'model',
  created: 0,
  owned_by: ownedBy,
});

/** The models that can be asked for, and their other names. */
function modelList(models: readonly Model[], aliases: ReadonlyMap<string, string>): object {
  const served = models.filter(({ status }) => status !== ModelStatus.DISABLED);
  const named = [
    ...served.map((model) => [model.id, model] as const),
    ...[...aliases].flatMap(([alias, target]) => {
      const model = served.find(({ id }) => id === target.split('@', 1)[0]);
      return model === undefined ? [] : [[alias, model] as const];
    }),
  ];
  return {
    object: 'list',
    data: named.map(([name, model]) => modelDescriptor(name, model)),
    models: named.map(([name, { id, status, limits }]) => ({
      name,
      description:
        `${name === id ? '' : `${id}: `}up to ${limits?.choices} choices and ${limits?.inputTokens} tokens of input` +
        (status === ModelStatus.READY ? '' : '; unavailable now'),
      release_date: '1970-01-01',
    })),
  };
}

// The questions of one request are answered side by side, a decision each.

/** Decisions of one request at a time: what a large request has to wait for are its own. */
const QUESTIONS_AT_A_TIME = 16;

/**
 * The answers. `inputField`: what the input is called in the body, for errors. Once one question is refused the others
 * are cancelled, and the request is refused as it was. Throws Refused.
 */
async function answersTo(asked: Asked, inputField: string, umpire: Umpire, terms: Terms): Promise<Answers> {
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
  return new Refused(reason, message, { path: places[path[0] ?? ''] ?? path, retryAfter, cause });
}
