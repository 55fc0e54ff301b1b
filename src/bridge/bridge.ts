/** What the bridge serves: both forms, the models as both name them, and its own health. */
import { type Model, ModelStatus } from '../../gen/umpire/v1/model_service_pb.ts';
import type { Metrics } from '../front/metrics.ts';
import type { Exchange, Reply, Site } from '../front/port.ts';
import { Refused } from '../front/refused.ts';
import type { Terms, Umpire } from '../front/umpire.ts';
import { answersTo } from './deciding.ts';
import { readJson } from './json.ts';
import { OPENAI } from './openai.ts';
import type { Form } from './question.ts';
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
