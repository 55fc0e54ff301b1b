/**
 * Decision servers: System One's `/v1/systemone`, and OpenAI's `/v1/decisions`. The model behind them is the encoder:
 * an option's logit is the cosine of its vector and that of the state, mixed with that of instructions and state.
 */
import type { Reply } from './faults.ts';
import { TOO_LONG } from './refusals.ts';
import type { ServedDialect } from './server.ts';
import type { SmallEncoder } from './text-models.ts';

/** A model that decides. */
export interface Decider {
  readonly encoder: SmallEncoder;
  /** The weight of instructions and state together. */
  readonly jointWeight: number;
  readonly temperature: number;
  /** Added to an option's logit for each option before it: a model that looks at places. */
  readonly placeBias?: number;
}

/** A decision server. */
export interface SystemOneServed extends Decider {
  readonly variant: 'systemone' | 'decisions';
  readonly model: string;
  /** The most options of a question. */
  readonly options: number;
  /** Tokens of the state. */
  readonly maxTokens: number;
  /** Digits after the point that probabilities are rounded to; left out, they are not. */
  readonly decimals?: number;
}

/** One question, whatever the variant. */
interface Question {
  readonly state: string;
  readonly name: string;
  readonly instructions: string;
  /** In the order in which they stand in the body. */
  readonly options: readonly string[];
}

interface Answered {
  readonly options: readonly string[];
  readonly probabilities: readonly number[];
}

/** Speaks as such a server does. */
export function systemOneDialect(served: SystemOneServed): ServedDialect {
  const { variant, encoder, model, options: most, maxTokens } = served;
  const own = variant === 'systemone' ? SYSTEM_ONE : DECISIONS;

  const decide = async (question: Question): Promise<Answered> => ({
    options: question.options,
    probabilities: (await probabilitiesOf(served, question)).map((p) => rounded(p, served.decimals)),
  });

  return {
    path: own.path,
    unauthorised: own.unauthorised,
    rows: () => 1,
    async answer(raw, text) {
      const question = own.read(raw as never, text);
      if (question === undefined) return own.refuse(422, 'a question is missing or of another shape');
      if ((raw as { model?: unknown }).model !== model) return own.refuse(400, 'Unknown model');
      const { options, state } = question;
      if (options.length > most) {
        return own.refuse(422, `Dictionary should have at most ${most} items after validation, not ${options.length}`);
      }
      const tokens = encoder.ids(state).length;
      if (tokens > maxTokens) return own.tooLong(tokens, maxTokens);
      return { status: 200, body: own.write(question, await decide(question), model) };
    },
  };
}

/** What the model makes of a question: the probability of each option. */
export async function probabilitiesOf(
  { encoder, jointWeight, temperature, placeBias = 0 }: Decider,
  { state, instructions, options }: Omit<Question, 'name'>,
): Promise<readonly number[]> {
  const alone = await encoder.vector(encoder.ids(state));
  const joint = await encoder.vector(encoder.ids(`${instructions}[SEP]${state}`));
  const premise = unit(alone.map((value, i) => (1 - jointWeight) * value + jointWeight * (joint[i] ?? 0)));
  const logits: number[] = [];
  for (const [place, option] of options.entries()) {
    const vector = await encoder.vector(encoder.ids(option));
    const cosine = vector.reduce((sum, value, i) => sum + value * (premise[i] ?? 0), 0);
    logits.push(cosine / temperature + place * placeBias);
  }
  const highest = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp(logit - highest));
  const sum = weights.reduce((all, weight) => all + weight, 0);
  return weights.map((weight) => weight / sum);
}

/** How a variant is written. */
interface Variant {
  readonly path: string;
  readonly unauthorised: Reply;
  read(body: never, text: string): Question | undefined;
  write(question: Question, answered: Answered, model: string): unknown;
  refuse(status: number, message: string): Reply;
  tooLong(tokens: number, limit: number): Reply;
}

const detail = (status: number, error_type: string, message: string): Reply => ({
  status,
  body: { detail: { error_type, message } },
});

const SYSTEM_ONE: Variant = {
  path: '/v1/systemone',
  unauthorised: detail(401, 'authentication_error', 'Cannot authenticate with the server.'),
  read(body: SystemOneBody, text) {
    const [[name, question] = []] = Object.entries(body.questions ?? {});
    if (typeof body.state !== 'string' || name === undefined || question?.type !== 'choice') return undefined;
    const names = Object.keys(question.criteria ?? {});
    // JSON.parse moves keys that look like numbers to the front; the order of the body is the one that was sent.
    const criteria = text.slice(text.indexOf('"criteria"') + '"criteria"'.length);
    const place = (option: string): number => criteria.indexOf(`${JSON.stringify(option)}:`);
    const options = names.sort((a, b) => place(a) - place(b));
    return { state: body.state, name, instructions: question.instructions ?? '', options };
  },
  write: ({ name }, { options, probabilities }, model) => ({
    model,
    answers: {
      [name]: {
        type: 'choice',
        choice: best(options, probabilities),
        probabilities: Object.fromEntries(options.map((option, i) => [option, probabilities[i]])),
        confidence: Math.max(...probabilities),
      },
    },
    usage: { input_tokens: 1, output_tokens: 2 },
  }),
  refuse: (status, message) => detail(status, 'api_usage_error', message),
  tooLong: () => TOO_LONG['system one'](),
};

const DECISIONS: Variant = {
  path: '/v1/decisions',
  unauthorised: {
    status: 401,
    body: { error: { message: 'Incorrect API key provided.', type: 'invalid_request_error', code: 'invalid_api_key' } },
  },
  read(body: DecisionsBody) {
    const [question] = body.questions ?? [];
    if (typeof body.input !== 'string' || question?.type !== 'choice') return undefined;
    const options = question.choices.map(({ value }) => value);
    return { state: body.input, name: question.name, instructions: question.instructions ?? '', options };
  },
  write: ({ name }, { options, probabilities }, model) => ({
    id: 'dec_1',
    object: 'decision',
    model,
    answers: [
      {
        name,
        type: 'choice',
        choice: best(options, probabilities),
        probabilities: options.map((value, i) => ({ value, probability: probabilities[i] })),
        confidence: Math.max(...probabilities),
      },
    ],
    usage: { input_tokens: 1 },
  }),
  refuse: (status, message) => ({ status, body: { error: { message, type: 'invalid_request_error', code: null } } }),
  tooLong: (tokens, limit) => TOO_LONG.openai(tokens, limit),
};

interface SystemOneBody {
  readonly state?: unknown;
  readonly questions?: Readonly<
    Record<string, { readonly type?: string; readonly instructions?: string; readonly criteria?: object }>
  >;
}

interface DecisionsBody {
  readonly input?: unknown;
  readonly questions?: readonly {
    readonly name: string;
    readonly type?: string;
    readonly instructions?: string;
    readonly choices: readonly { readonly value: string }[];
  }[];
}

function best(options: readonly string[], probabilities: readonly number[]): string {
  return options[probabilities.indexOf(Math.max(...probabilities))] ?? '';
}

function unit(vector: readonly number[]): readonly number[] {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return vector.map((value) => value / length);
}

function rounded(value: number, decimals: number | undefined): number {
  return decimals === undefined ? value : Number(value.toFixed(decimals));
}
