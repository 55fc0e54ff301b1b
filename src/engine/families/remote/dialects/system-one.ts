/**
 * The dialect `system-one`: an HTTP server decides itself, and returns a probability for each choice. It is asked in
 * one order of the choices or several. The logarithms of the probabilities are logits like others: they are divided by
 * the package's temperature and normalised. A request has one question, since some models decide several jointly.
 * Bodies are written as text: a JavaScript object moves names that are whole numbers to its front, and a model's answer
 * depends on the order in which it reads the choices.
 */
import { type Checker, type JsonObject, readOptions } from '../../../packages/manifest.ts';
import type { Family, FamilyParts } from '../../family.ts';
import { CallFailed, malformed } from '../call-failed.ts';
import { createHttpFamily, type Post } from '../http/http-connection.ts';
import { finiteNumber, listIn, objectOf } from '../http/parse-json.ts';
import {
  fill,
  type RemoteOptions,
  readRemoteOptions,
  readTemplate,
  readTurns,
  type TextName,
  textsOf,
} from '../options.ts';
import { overTurns, type Scorer } from '../scorer.ts';
import { type HttpPaths, type HttpServerOptions, readHttpServer } from '../server-options.ts';

/** Loads a package of this dialect. Throws InvalidOptions, or what loading its files throws. */
export async function loadSystemOne(parts: FamilyParts): Promise<Family> {
  const options = readOptions(parts.options, readSystemOneOptions);
  return await createHttpFamily(parts, options, (post) => createSystemOneScorer(post, options));
}

/** A scorer that makes one request for each order; logits are the logarithms of the probabilities. */
function createSystemOneScorer(
  post: Post,
  options: Pick<SystemOneOptions, 'variant' | 'model' | 'permutations' | 'state' | 'instructions'>,
): Scorer {
  const { variant, model } = options;
  return {
    choiceReadsPremise: false,
    async logits(premise, choices, call) {
      const texts = textsOf(premise);
      const question = { model, state: fill(options.state, texts), instructions: fill(options.instructions, texts) };
      return await overTurns(choices, options.permutations, call, async (turned, part) => {
        const names = turned.map(({ text }) => text);
        return await post(bodyOf({ ...question, choices: names }, variant), names.length, part, (answer) => ({
          logits: logitsOf(probabilitiesIn(answer, names, variant)),
        }));
      });
    },
  };
}

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

// The options of the dialect `system-one`, beside those of all dialects (remote/options.ts):
//
//     { "server": { "address", "tls", "token_file" or "token_env", "path", "health" },     see remote/server-options.ts
//       "variant": "systemone": { state, questions: { … criteria } } → { answers: { … probabilities } }, as TypeSafe,
//                  llama.cpp, Ollama, vLLM, SGLang and LocalAI have it; "path" is "/v1/systemone" unless it says
//                  otherwise,
//                  or "decisions": { input, questions: [{ … choices }] } → { answers: [{ … probabilities }] }, as
//                  OpenAI has it; "path" is "/v1/decisions". May be left out: "systemone",
//       "model": the model's name at the server,
//       "options": the most choices that the server takes; 255 unless it says otherwise,
//       "permutations": 1, 2 or 4: in how many orders the choices are asked. May be left out: 1,
//       "cuts": "refuses" or "silently": what the server does with texts that are too long,
//       "templates": { "state": what is sent of the input, "instructions": of the instruction }, both optional }
//
// With `"cuts": "silently"` the package must have a `tokenizer`, and its `limits` decide: what they allow, all choices
// and the server's own prompt included, must be what the server reads.

/** The two forms of request and answer. */
export type SystemOneVariant = 'systemone' | 'decisions';

/** The options of a package of this dialect, as they were read. */
export interface SystemOneOptions extends RemoteOptions {
  readonly server: HttpServerOptions;
  readonly variant: SystemOneVariant;
  readonly model: string;
  /** In how many orders the choices are asked. */
  readonly permutations: number;
  readonly state: string;
  readonly instructions: string;
}

const PATHS: Readonly<Record<SystemOneVariant, HttpPaths>> = {
  systemone: { path: '/v1/systemone', health: '/v1/models' },
  decisions: { path: '/v1/decisions', health: '/v1/models' },
};

/** Choices that a server takes, where a package does not say: the number that both forms were specified with. */
const DEFAULT_CHOICES = 255;

/** Reads the options; what is wrong becomes a problem. */
export function readSystemOneOptions(fields: Checker): SystemOneOptions {
  const variant = fields.oneOf('variant', ['systemone', 'decisions'], 'systemone');
  const choices = fields.integer('options', 2, 300, DEFAULT_CHOICES);
  const permutations = readTurns(fields, 'permutations');
  const templates = fields.object('templates', {});
  const options: SystemOneOptions = {
    ...readRemoteOptions(fields, { rows: choices, cap: { field: 'options', choices } }),
    server: readHttpServer(fields, PATHS[variant]),
    variant,
    model: fields.text('model', /./u),
    permutations,
    state: templateOf(templates, 'state', 'input', ['instruction', 'input']),
    instructions: templateOf(templates, 'instructions', 'instruction', ['input', 'instruction']),
  };
  templates.refuseOthers();
  return options;
}

/** A template that may be left out: then it is the named text, as it is. */
function templateOf(templates: Checker, field: string, text: TextName, names: readonly TextName[]): string {
  return templates.has(field) ? readTemplate(templates, field, names) : `{${text}}`;
}

// Finds out to what servers' probabilities are rounded, and makes logits of them.

/** Fewer decimals cannot be told from answers that happen to be round. */
const LEAST_DECIMALS = 2;
/** Numbers with more decimals count as rounded to this many. */
const MOST_DECIMALS = 9;
/** Rounded numbers may have passed through single precision: how far off these are, below 1. */
const SINGLE_PRECISION = 2 ** -24;

/** Half of the last decimal place that all of them are rounded to: of 2 to 9 decimals the fewest that fit all. */
export function halfDigitOf(probabilities: Float64Array): number {
  for (let decimals = LEAST_DECIMALS; decimals < MOST_DECIMALS; decimals++) {
    const scale = 10 ** decimals;
    const slack = Math.min(SINGLE_PRECISION, 0.01 / scale);
    if (probabilities.every((p) => Math.abs(p - Math.round(p * scale) / scale) <= slack)) return 0.5 / scale;
  }
  return 0.5 / 10 ** MOST_DECIMALS;
}

/**
 * The logarithm of each probability. Servers round, and what they rounded to 0 is not impossible: all the zeros
 * together are at most what rounding took off the others, half of a digit of each, and none is more than half a digit.
 */
export function logitsOf(probabilities: Float64Array): Float64Array {
  const half = halfDigitOf(probabilities);
  const zeros = probabilities.filter((p) => p < half).length;
  const least = half * Math.min(1, (probabilities.length - zeros) / Math.max(1, zeros));
  return probabilities.map((p) => Math.log(Math.max(p, least)));
}
