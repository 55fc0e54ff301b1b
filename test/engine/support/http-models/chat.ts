/**
 * A chat server, OpenAI's `/v1/chat/completions`, with a model that reads the usual prompt and decides as that of a
 * decision server: the probability of a letter is that of its option.
 */
import { askedAs } from '../../../../src/engine/package-tools/presets.ts';
import type { Reply } from './faults.ts';
import { TOO_LONG, type TooLong } from './refusals.ts';
import type { ServedDialect } from './server.ts';
import { type Decider, probabilitiesOf } from './system-one.ts';

/** A chat server. */
export interface ChatServed extends Decider {
  readonly model: string;
  /** Tokens of a request; more are cut from the end if `tooLong` is `cuts`. */
  readonly maxTokens: number;
  readonly tooLong?: TooLong | 'cuts';
  /** Where its requests go, and the field that bounds an answer; those that OpenAI had first if left out. */
  readonly path?: string;
  readonly limit?: string;
  /** Whether it returns log-probabilities; true if left out. */
  readonly logprobs?: boolean;
}

/** The letters as they are used, and forms in which tokenizers have them. */
const LETTERS = 'ABCDEFGHJKLMNOPQRSTU';
const FORMS: readonly ((letter: string) => string)[] = [
  (letter) => letter,
  (letter) => ` ${letter}`,
  (letter) => letter.toLowerCase(),
  (letter) => `▁${letter}`,
  (letter) => `Ġ${letter}`,
  (letter) => `**${letter}`,
  (letter) => `${letter}.`,
];
/** The probability of all letters together; a word has the rest. */
const MASS = 0.96;

interface ChatBody {
  readonly model?: unknown;
  readonly messages?: readonly { readonly role: string; readonly content: string }[];
  readonly logprobs?: boolean;
  readonly top_logprobs?: number;
  readonly response_format?: {
    readonly json_schema: {
      readonly schema: { readonly properties: { readonly answer: { readonly enum: string[] } } };
    };
  };
}

/** Speaks as such a server does. */
export function chatDialect(served: ChatServed): ServedDialect {
  const { encoder, model, maxTokens, path = '/v1/chat/completions', limit = 'max_tokens' } = served;
  const { tooLong = TOO_LONG.openai } = served;
  return {
    path,
    unauthorised: refusal(401, 'Incorrect API key provided.', 'invalid_api_key'),
    rows: () => 1,
    async answer(raw) {
      const body = raw as ChatBody & Readonly<Record<string, unknown>>;
      if (body.model !== model) return refusal(404, `The model ${body.model} does not exist`, 'model_not_found');
      if (typeof body[limit] !== 'number') return refusal(400, `Unsupported parameter: use '${limit}'`, 'unsupported');
      const prompt = body.messages?.at(-1)?.content ?? '';
      const ids = encoder.ids(body.messages?.map(({ content }) => content).join('\n') ?? '');
      if (ids.length > maxTokens && tooLong !== 'cuts') return tooLong(ids.length, maxTokens);
      const question = questionIn(prompt);
      if (question === undefined) return refusal(400, 'another prompt than the usual one', 'test');
      const state = ids.length > maxTokens ? question.state.slice(0, maxTokens) : question.state;
      const probabilities = await probabilitiesOf(served, { ...question, state });
      const best = LETTERS[probabilities.indexOf(Math.max(...probabilities))] ?? '';
      const allowed = body.response_format?.json_schema.schema.properties.answer.enum;
      const isListed = served.logprobs !== false && body.logprobs === true;
      const choice = {
        index: 0,
        message: {
          role: 'assistant',
          content: allowed === undefined ? best : JSON.stringify({ answer: best }),
          refusal: null,
        },
        logprobs: isListed ? { content: [listed(probabilities, body.top_logprobs ?? 0)], refusal: null } : null,
        finish_reason: allowed === undefined ? 'length' : 'stop',
      };
      const usage = { prompt_tokens: ids.length, completion_tokens: 1, total_tokens: ids.length + 1 };
      return {
        status: 200,
        body: { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model, choices: [choice], usage },
      };
    },
  };
}

/** The first token, and the likeliest ones in its place. */
function listed(probabilities: readonly number[], count: number) {
  const letters = probabilities.map((p, i) => ({
    token: (FORMS[i % FORMS.length] as (letter: string) => string)(LETTERS[i] as string),
    p: MASS * p,
  }));
  const all = [...letters, { token: 'The', p: 1 - MASS }].sort((a, b) => b.p - a.p).slice(0, count);
  const top = all.map(({ token, p }) => ({ token, logprob: Math.log(p), bytes: [...Buffer.from(token)] }));
  return { ...top[0], top_logprobs: top };
}

const SEPARATOR = '\u0000';
/** The user's message of the usual prompt, as parts between its texts. */
const PROMPT = (askedAs('litellm', 'chat').options.templates as { readonly user: string }).user
  .replace('{input}', SEPARATOR)
  .replace('{instruction}', SEPARATOR)
  .replace('{choices}', SEPARATOR)
  .split(SEPARATOR);

/** The texts of such a message; undefined if it is another prompt. */
function questionIn(prompt: string) {
  const [first = '', second = '', third = '', last = ''] = PROMPT;
  const list = prompt.lastIndexOf(`${third}A. `);
  // Of the two, a text may hold what separates them.
  const instruction = prompt.lastIndexOf(second, list - 1);
  if (!prompt.startsWith(first) || !prompt.endsWith(last) || instruction < 0 || list < 0) return undefined;
  const lines = prompt.slice(list + third.length, prompt.length - last.length);
  const options: string[] = [];
  for (let at = 0; at >= 0 && at < lines.length; ) {
    const next = lines.indexOf(`\n${LETTERS[options.length + 1]}. `, at);
    options.push(lines.slice(at + 'A. '.length, next < 0 ? lines.length : next));
    at = next < 0 ? -1 : next + 1;
  }
  const instructions = prompt.slice(instruction + second.length, list);
  return { instructions, options, state: prompt.slice(first.length, instruction) };
}

const refusal = (status: number, message: string, code: string): Reply => ({
  status,
  body: { error: { message, type: 'invalid_request_error', param: null, code } },
});

type Body = { readonly choices: readonly Readonly<Record<string, unknown>>[] };
type Token = Readonly<Record<string, unknown>>;

/** An answer with its one choice changed. */
const changed = (change: object) => (body: Body) => ({ ...body, choices: [{ ...body.choices[0], ...change }] });
/** An answer with another text. */
const saying = (content: unknown) => changed({ message: { role: 'assistant', content } });

/** Ways to spoil an answer, whatever was asked for. */
const SPOILED: Readonly<Record<string, (body: Body) => unknown>> = {
  'there are no choices': (body) => ({ ...body, choices: [] }),
  'there are two choices': (body) => ({ ...body, choices: [body.choices[0], body.choices[0]] }),
  'the choices are none': (body) => ({ ...body, choices: null }),
  'the choice is null': (body) => ({ ...body, choices: [null] }),
  'there is no message': changed({ message: undefined }),
  'the model refuses': changed({ message: { role: 'assistant', content: null, refusal: 'No.' } }),
  'the answer was filtered': changed({ finish_reason: 'content_filter' }),
  'a stream': (body) => `data: ${JSON.stringify(body)}\n\ndata: [DONE]\n\n`,
};

/** The tokens of an answer, changed. */
const relisted = (change: (tokens: readonly Token[]) => readonly unknown[]) => (body: Body) => {
  const [{ logprobs } = {}] = body.choices;
  const [token] = (logprobs as { readonly content: readonly { readonly top_logprobs: readonly Token[] }[] }).content;
  return changed({ logprobs: { content: [{ ...token, top_logprobs: change(token?.top_logprobs ?? []) }] } })(body);
};
const first = (change: object) => relisted(([token, ...rest]) => [{ ...token, ...change }, ...rest]);

/** Ways to spoil an answer with log-probabilities. */
export const SPOILED_LETTERS: Readonly<Record<string, (body: Body) => unknown>> = {
  ...SPOILED,
  'no log-probabilities': changed({ logprobs: null }),
  'no tokens': changed({ logprobs: { content: [] } }),
  'the tokens are none': changed({ logprobs: { content: null } }),
  'no other tokens': changed({ logprobs: { content: [{ token: 'A', logprob: 0, top_logprobs: null }] } }),
  'an empty list of tokens': relisted(() => []),
  'a token is null': relisted((tokens) => [null, ...tokens]),
  'a token is a number': first({ token: 1 }),
  'a log-probability is missing': first({ logprob: undefined }),
  'a log-probability is a text': first({ logprob: '-1' }),
  'a log-probability is null': first({ logprob: null }),
  'a log-probability is above 0': first({ logprob: 0.5 }),
  'a log-probability is beyond numbers': first({ logprob: 1e4 }),
  'all tokens are certain': relisted((tokens) => tokens.map((token) => ({ ...token, logprob: 0 }))),
  'all tokens are impossible': relisted((tokens) => tokens.map((token) => ({ ...token, logprob: -9999 }))),
  'the letters are not among the tokens': relisted(() => [
    { token: 'The', logprob: -0.1 },
    { token: 'I', logprob: -2.5 },
  ]),
  'letters of no choice': relisted((tokens) => tokens.map((token, i) => ({ ...token, token: LETTERS[i + 9] }))),
  'words that begin with the letters': relisted((tokens) =>
    tokens.map((token, i) => ({ ...token, token: `${'ABC'[i]}n` })),
  ),
  'a NaN': (body) => JSON.stringify(first({ logprob: 7.5 })(body)).replace('7.5', 'NaN'),
};

/** Ways to spoil an answer in a schema. */
export const SPOILED_ANSWERS: Readonly<Record<string, (body: Body) => unknown>> = {
  ...SPOILED,
  prose: saying('A customer writes that the parcel is late.'),
  'a refusal in prose': saying("I'm sorry, but I can't help with that."),
  'no text': saying(null),
  'an empty text': saying(''),
  'a text in parts': saying([{ type: 'text', text: 'A' }]),
  'a letter of no choice': saying('{"answer":"K"}'),
  'a letter that is not used': saying('{"answer":"I"}'),
  'two letters': saying('{"answer":"A, B"}'),
  'an answer of another name': saying('{"letter":"A"}'),
  'an answer that is a number': saying('{"answer":1}'),
  'half of the answer': saying('{"answer":"A'),
  'a list': saying('["A"]'),
};
