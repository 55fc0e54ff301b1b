/**
 * Surveys a server of the dialect `rerank`: where it listens, which of the two shapes it speaks, what its scores are
 * and which switch makes logits of them, how many documents it takes, and what it does with long texts.
 */
import { malformed } from '../../families/remote/call-failed.ts';
import {
  doubtOf,
  logitsOf,
  type RerankScores,
  type RerankShape,
  rerankBody,
  scoresIn,
} from '../../families/remote/dialects/rerank.ts';
import { fill, type RowTexts } from '../../families/remote/options.ts';
import type { Asking, Reply } from './asking.ts';
import { askFacts, modelOf, tokensOf } from './facts.ts';
import {
  mostRows,
  NotSuchADialect,
  ownPart,
  ownText,
  type ReadReply,
  readReply,
  type Survey,
  type SurveyRequest,
} from './findings.ts';
import { type LongAnswer, SAYINGS, tryLongTexts } from './long-texts.ts';

const PATHS = ['/v1/rerank', '/rerank'] as const;
const SHAPES: readonly RerankShape[] = ['documents', 'texts'];
const USUAL = { query: '{instruction}\n{input}', document: '{choice}' } as const;
const SWITCHES = ['raw_scores', 'use_activation'] as const;
const NOWHERE: ReadonlySet<number> = new Set([404, 405]);
const ROWS = 32;
/** Scores and sigmoids that differ by no more than this are the same: rounding loses less. */
const NEAR = 0.01;

/** Where requests go, and how they are written. */
interface Form {
  readonly path: string;
  readonly shape: RerankShape;
  readonly model: string | undefined;
}

const NO_SWITCH: RerankScores = { kind: 'logit', ask: undefined };

/** Surveys a server. Rejects with Error if it cannot be used in this dialect. */
export async function surveyRerank(asking: Asking, request: SurveyRequest): Promise<Survey> {
  const { canary, own } = request;
  const facts = await askFacts(asking);
  const model = modelOf(facts, request.model ?? ownText(own, 'model'));
  const templates = { ...USUAL, ...ownPart(own, 'templates') };
  const textOf = (template: string, texts: Readonly<Record<string, string>>): string => fill(template, rowTexts(texts));
  const send = (form: Form, input: string, choices: readonly string[], scores: RerankScores): Promise<Reply> => {
    const texts = { input, instruction: canary.instruction };
    const documents = choices.map((choice) => JSON.stringify(textOf(templates.document, { ...texts, choice })));
    const query = JSON.stringify(textOf(templates.query, texts));
    const body = rerankBody(query, documents, { ...form, scores, refuses: form.shape === 'texts' });
    return asking.post(form.path, body);
  };
  const askCanary = async (form: Form, scores: RerankScores): Promise<ReadReply<Float64Array>> => {
    const reply = await send(form, canary.input, canary.choices, scores);
    return readReply(reply, form.path, (body) => Float64Array.from(scoresIn(body, form.shape, canary.choices.length)));
  };

  const { form, plain } = await findForm(
    asking.address,
    request.path,
    model,
    (each) => send(each, canary.input, canary.choices, NO_SWITCH),
    canary.choices.length,
  );
  const { scores, values, how } = await findScores(plain, (asked) => askCanary(form, asked));
  const doubt = doubtOf(values, scores);
  if (doubt !== undefined) {
    throw new Error(`${doubt}. No switch of this server's gives logits; another server, or another model, may`);
  }
  const maxTokens = tokensOf(facts, model);
  const rows = await mostRows(Math.min(facts.rows ?? ROWS, 300), (documents) =>
    send(form, canary.input, documents, scores),
  );
  const longTexts = await tryLongTexts(
    async (text) => longAnswer(await send(form, text, SAYINGS, scores), form, scores),
    { known: maxTokens, tolerance: NEAR },
  );
  return {
    options: {
      dialect: 'rerank',
      shape: form.shape,
      ...(model === undefined ? {} : { model }),
      ...(scores.kind === 'probability' ? { scores: 'probability' } : { scores: 'logit', raw: scores.ask ?? 'none' }),
      ...(form.shape === 'texts' ? { truncate: 'refuse' } : {}),
      templates,
      batch: { rows },
    },
    path: form.path,
    longTexts,
    maxTokens,
    reads: 'pair',
    cap: undefined,
    temperature: 1,
    lines: [
      ...facts.lines,
      `POST ${form.path} in the shape "${form.shape}", ${rows} documents a request`,
      `scores: ${how}`,
    ],
  };
}

/** The first path and shape that are answered. */
async function findForm(
  address: string,
  path: string | undefined,
  model: string | undefined,
  send: (form: Form) => Promise<Reply>,
  count: number,
): Promise<{ readonly form: Form; readonly plain: Float64Array }> {
  const attempts: string[] = [];
  for (const each of path === undefined ? PATHS : [path]) {
    for (const shape of SHAPES) {
      const form = { path: each, shape, model };
      const reply = await send(form);
      const read = readReply(reply, each, (body) => scoresIn(body, shape, count));
      if ('value' in read) return { form, plain: Float64Array.from(read.value) };
      attempts.push(`"${shape}": ${read.problem}`);
      if (reply.kind === 'refused' && NOWHERE.has(reply.status)) break;
    }
  }
  throw new NotSuchADialect('rerank', address, attempts);
}

interface FoundScores {
  readonly scores: RerankScores;
  /** The scores of the canary's choices. */
  readonly values: Float64Array;
  readonly how: string;
}

/** Finds out what the scores are from what a switch makes of them. `plain`: those without a switch. */
async function findScores(
  plain: Float64Array,
  ask: (scores: RerankScores) => Promise<ReadReply<Float64Array>>,
): Promise<FoundScores> {
  if (!plain.every(isProbability)) return { scores: NO_SWITCH, values: plain, how: 'logits without being asked for' };
  for (const each of SWITCHES) {
    const scores: RerankScores = { kind: 'logit', ask: each };
    const read = await ask(scores);
    if ('value' in read && isLogitOf(read.value, plain)) {
      return { scores, values: read.value, how: `logits, by ${each}` };
    }
  }
  return {
    scores: { kind: 'probability' },
    values: plain,
    how: 'probabilities; neither raw_scores nor use_activation gives logits',
  };
}

function isProbability(score: number): boolean {
  return score >= 0 && score <= 1;
}

/**
 * Whether numbers can be the logits of these probabilities: they differ from them, and either are no probabilities or
 * have these as their sigmoids.
 */
function isLogitOf(values: Float64Array, probabilities: Float64Array): boolean {
  const sigmoids = values.map((value) => 1 / (1 + Math.exp(-value)));
  return (
    values.some((value, i) => Math.abs(value - (probabilities[i] as number)) > NEAR) &&
    (!values.every(isProbability) ||
      sigmoids.every((sigmoid, i) => Math.abs(sigmoid - (probabilities[i] as number)) <= NEAR))
  );
}

function longAnswer(reply: Reply, { shape }: Form, scores: RerankScores): LongAnswer {
  if (reply.kind === 'slow') return reply;
  if (reply.kind === 'refused') return { kind: 'refused', limit: reply.failure.tooLong?.limit };
  const found = scoresIn(reply.body, shape, SAYINGS.length);
  if (found.length === 0) throw malformed('there are no scores');
  return { kind: 'numbers', numbers: [...logitsOf(Float64Array.from(found), scores)] };
}

function rowTexts(texts: Readonly<Record<string, string>>): RowTexts {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, { text, ids: [] }]));
}
