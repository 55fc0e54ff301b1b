/**
 * The dialect `chat`: a language model behind OpenAI's `POST /v1/chat/completions`. It is shown the choices as a
 * lettered list, in code-unit order or in rotations of it, and asked for one letter. The logarithms of the
 * probabilities of the letters as its first token are the logits. From a server without log-probabilities one answer is
 * taken, in a JSON schema of the letters; its logit is the same for every text.
 */
import { type Checker, type JsonObject, readOptions } from '../../../packages/manifest.ts';
import type { Family, FamilyParts, Premise } from '../../family.ts';
import { CallFailed, malformed } from '../call-failed.ts';
import { createHttpFamily, type Post } from '../http/http-connection.ts';
import { finiteNumber, listIn, objectOf, parseJson } from '../http/parse-json.ts';
import { checkMentions, fill, type RemoteOptions, readRemoteOptions, readTurns, textsOf } from '../options.ts';
import { type Logits, overTurns, type ReadChoice, type Scorer } from '../scorer.ts';
import { type HttpServerOptions, readHttpServer } from '../server-options.ts';

/** Loads a package of this dialect. Throws InvalidOptions, or what loading its files throws. */
export async function loadChat(parts: FamilyParts): Promise<Family> {
  const options = readOptions(parts.options, readChatOptions);
  return await createHttpFamily(parts, options, (post) => createChatScorer(post, options));
}

/** A scorer that makes one request for each order. */
function createChatScorer(post: Post, options: ChatOptions): Scorer {
  const read = options.scores === 'choice' ? choiceIn : letterLogitsIn;
  return {
    choiceReadsPremise: false,
    coarse: options.scores === 'choice',
    logits: (premise, choices, call) =>
      overTurns(choices, options.rotations, call, (turned, part) =>
        post(chatBody(premise, turned, options), turned.length, part, (answer) => read(answer, turned.length)),
      ),
  };
}

/** As many as servers return alternatives of a token. I is none: a model that refuses begins with that word. */
const LETTERS = 'ABCDEFGHJKLMNOPQRSTU';
/** Tokens of an answer in the JSON schema, with room for white space. */
const ANSWER_TOKENS = 32;

/** The body of a request, as JSON. */
function chatBody(premise: Premise, choices: readonly ReadChoice[], options: ChatOptions): string {
  const { model, scores, system, user, maxTokensField, body } = options;
  const lines = choices.map((choice, i) => fill(options.choice, { choice, letter: { text: LETTERS[i] as string } }));
  const texts = { ...textsOf(premise), choices: { text: lines.join('\n') } };
  const messages = [
    ...(system === '' ? [] : [{ role: 'system', content: fill(system, texts) }]),
    { role: 'user', content: fill(user, texts) },
  ];
  const asked =
    scores === 'choice'
      ? { [maxTokensField]: ANSWER_TOKENS, response_format: answerFormat([...LETTERS].slice(0, choices.length)) }
      : { [maxTokensField]: 1, logprobs: true, top_logprobs: LETTERS.length };
  const all = { ...(model !== undefined && { model }), messages, temperature: 0, stream: false, ...asked, ...body };
  return JSON.stringify(Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)));
}

function answerFormat(letters: readonly string[]): JsonObject {
  const schema = {
    type: 'object',
    properties: { answer: { type: 'string', enum: letters } },
    required: ['answer'],
    additionalProperties: false,
  };
  return { type: 'json_schema', json_schema: { name: 'decision', strict: true, schema } };
}

// Reads answers. A model that says something else than a letter does so because of the texts that it was sent: that is
// no decision, but does not make the server unfit.

/** The answer's one choice. Throws CallFailed `malformed`, or `refused` where the model would not or may not answer. */
function completionIn(answer: unknown): JsonObject {
  const all = listIn(objectOf(answer).choices, 'choices');
  if (all.length !== 1) throw malformed(`the answer has ${all.length} choices, not 1`);
  const completion = objectOf(all[0]);
  const { refusal } = objectOf(completion.message);
  if (completion.finish_reason === 'content_filter' || (typeof refusal === 'string' && refusal !== '')) {
    throw new CallFailed('refused', 'the model refused to answer, or its answer was filtered', { blame: 'request' });
  }
  return completion;
}

const notALetter = (message: string, details?: string): CallFailed =>
  new CallFailed('malformed', message, { blame: 'request', ...(details !== undefined && { details }) });

/**
 * A letter as tokenizers write it: alone, after a blank (which some write as `▁` or `Ġ`), small, or with the marks that
 * models put around it.
 */
const LETTER = /^[\s▁ĠĊ"*([{]*([a-z])[\s"*)\]}.:,]*$/i;
/** No token that is a letter has more characters. */
const LONGEST_TOKEN = 16;

/** The place of the letter that a text is; undefined if it is none of the first `count`. */
function placeOf(text: string, count: number): number | undefined {
  if (text.length > LONGEST_TOKEN) return undefined;
  const [, letter = ''] = LETTER.exec(text.normalize('NFKC')) ?? [];
  const place = letter === '' ? -1 : LETTERS.indexOf(letter.toUpperCase());
  return place >= 0 && place < count ? place : undefined;
}

/** How far above 1 the sum of probabilities may be: servers round. */
const SLACK = 0.01;
/** The least probability of all letters together: with less the model is about to say something else. */
const LEAST_MASS = 0.5;
/** Half of the step below 1 in single precision: what a server may have rounded off. */
const ROUNDED_OFF = 2 ** -25;

/**
 * The logarithm of the probability of each of the first `count` letters, which is the sum over the tokens that are the
 * letter. A letter that is not among the tokens returned gets an equal part of what these leave, but no more than the
 * least of them. Throws CallFailed: `malformed` without log-probabilities of the first token, or with too little
 * probability on the letters.
 */
export function letterLogitsIn(answer: unknown, count: number): Pick<Logits, 'logits' | 'doubt'> {
  const { logprobs } = completionIn(answer);
  if (logprobs === null || logprobs === undefined) {
    throw malformed('the answer has no log-probabilities; "scores": "choice" does without them');
  }
  const [first] = listIn(objectOf(logprobs).content, 'tokens with log-probabilities');
  const tokens = tokensIn(objectOf(first).top_logprobs);
  const letters = new Float64Array(count);
  for (const { token, p } of tokens) {
    const place = placeOf(token, count);
    if (place !== undefined) letters[place] = (letters[place] as number) + p;
  }
  const mass = letters.reduce((sum, p) => sum + p, 0);
  if (mass < LEAST_MASS) {
    throw notALetter(
      `the letters of the choices have ${mass.toFixed(2)} of the probability, less than ${LEAST_MASS}: the model says something else`,
      `its likeliest token is ${JSON.stringify(tokens[0]?.token ?? '')}`,
    );
  }
  const left = 1 - tokens.reduce((sum, { p }) => sum + p, 0);
  if (left < -SLACK) throw malformed(`the probabilities of the tokens sum to ${(1 - left).toFixed(3)}`);
  const missing = letters.filter((p) => p === 0).length;
  const each = Math.min(Math.max(left, ROUNDED_OFF) / missing, tokens.at(-1)?.p ?? 0);
  const isSampled = missing > 0 && tokens.length === 1 && left < ROUNDED_OFF;
  return {
    logits: letters.map((p) => Math.log(p === 0 ? each : p)),
    ...(isSampled && { doubt: 'only the sampled token has a probability; try "body": { "temperature": 1 }' }),
  };
}

/** Tokens that are not impossible, the likeliest first. Throws CallFailed `malformed`. */
function tokensIn(list: unknown): readonly { readonly token: string; readonly p: number }[] {
  const tokens = listIn(list, 'top_logprobs').map((each) => {
    const { token, logprob } = objectOf(each);
    if (typeof token !== 'string') throw malformed('a token is no text');
    return { token, p: Math.exp(finiteNumber(logprob, 'log-probability')) };
  });
  // Some servers add the token that was sampled to those that they list.
  const found = new Map(tokens.map((each) => [`${each.p} ${each.token}`, each])).values();
  return [...found].filter(({ p }) => p > 0).sort((a, b) => b.p - a.p);
}

/** How sure a decision by an answer alone is at the temperature 1, whatever the number of choices. */
const USUAL_CONFIDENCE = 0.9;

/** Logits of the one answer: it gets 0.9 at the temperature 1, the others equal parts of the rest. */
export function choiceIn(answer: unknown, count: number): Pick<Logits, 'logits'> {
  const { content } = objectOf(completionIn(answer).message);
  const place = typeof content === 'string' ? placeOf(answerOf(content), count) : undefined;
  if (place === undefined) throw notALetter('the answer is none of the letters of the choices');
  const logits = new Float64Array(count);
  logits[place] = Math.log(((count - 1) * USUAL_CONFIDENCE) / (1 - USUAL_CONFIDENCE));
  return { logits };
}

/** The field `answer` if the text is JSON, else the text as it is. */
function answerOf(content: string): string {
  let parsed: unknown;
  try {
    parsed = parseJson(Buffer.from(content));
  } catch {
    return content;
  }
  const { answer } = Object(parsed) as JsonObject;
  return typeof answer === 'string' ? answer : '';
}

// The options of the dialect `chat`, beside those of all dialects (remote/options.ts):
//
//     { "server": { "address", "tls", "token_file" or "token_env", "token_header", "path", "health" },
//                 see remote/server-options.ts; "path" is "/v1/chat/completions" unless it says otherwise,
//       "model": the model's name at the server, if it wants one,
//       "scores": "logprobs": the log-probabilities of the first token, or "choice": the answer alone, for a server
//                 without these. May be left out: "logprobs",
//       "options": the most choices that are sent, 20 at most. May be left out: 20,
//       "rotations": 1, 2 or 4: in how many orders the choices are asked. May be left out: 1,
//       "cuts": "refuses" or "silently": what the server does with texts that are too long,
//       "templates": { "system": the first message, which may be left out, and "user": the other; with {input} and
//                 {choices} in one of them, and {instruction}; "choice": a line of {choices}, with {letter} and
//                 {choice} },
//       "max_tokens_field": the field that bounds the tokens of an answer: "max_tokens" or "max_completion_tokens".
//                 May be left out: "max_tokens",
//       "body": fields that are laid over those of every request; null takes one out. May be left out }
//
// With `"cuts": "silently"` the package must have a `tokenizer`, and its `limits` decide: what they allow, all choices
// and the prompt included, must be what the server reads.

/** The options of a package of this dialect, as they were read. */
interface ChatOptions extends RemoteOptions {
  readonly server: HttpServerOptions;
  readonly model: string | undefined;
  readonly scores: 'logprobs' | 'choice';
  readonly rotations: number;
  /** Templates; the first is empty if there is no such message. */
  readonly system: string;
  readonly user: string;
  readonly choice: string;
  readonly maxTokensField: string;
  readonly body: JsonObject;
}

/** What `body` may not change: the question itself, and what says how its answer is to be read. */
const FIXED = ['model', 'messages', 'stream', 'n', 'logprobs'];

/** Reads the options; what is wrong becomes a problem. */
export function readChatOptions(fields: Checker): ChatOptions {
  const choices = fields.integer('options', 2, LETTERS.length, LETTERS.length);
  const templates = fields.object('templates');
  const system = templates.text('system', /./su, '');
  const [user, choice] = [templates.text('user'), templates.text('choice')];
  checkMentions(templates, 'user', [system, user], ['instruction', 'input', 'choices'], ['input', 'choices']);
  checkMentions(templates, 'choice', [choice], ['letter', 'choice'], ['letter', 'choice']);
  const over = fields.object('body', {});
  for (const field of FIXED) if (over.has(field)) over.problem('cannot be changed', field);
  const options: ChatOptions = {
    ...readRemoteOptions(fields, {
      rows: choices,
      cap: { field: 'options', choices },
    }),
    server: readHttpServer(fields, { path: '/v1/chat/completions', health: '/v1/models' }),
    model: fields.optionalText('model', /./u),
    scores: fields.oneOf('scores', ['logprobs', 'choice'], 'logprobs'),
    rotations: readTurns(fields, 'rotations'),
    ...{ system, user, choice },
    maxTokensField: fields.oneOf('max_tokens_field', ['max_tokens', 'max_completion_tokens'], 'max_tokens'),
    body: Object.fromEntries(over.fields.map((field) => [field, over.value(field)])),
  };
  templates.refuseOthers();
  return options;
}
