/**
 * Surveys a server of the dialect `embeddings`: where it listens, how many texts it takes, and what it does with long
 * ones.
 */
import { type Encoding, embeddingsBody, vectorsIn } from '../../families/remote/dialects/embeddings.ts';
import { normalised } from '../../families/vectors.ts';
import type { Asking, Reply } from './asking.ts';
import { askFacts, modelOf, tokensOf } from './facts.ts';
import { mostRows, NotSuchADialect, ownPart, ownText, readReply, type Survey, type SurveyRequest } from './findings.ts';
import { type LongAnswer, tryLongTexts } from './long-texts.ts';

const PATHS = ['/v1/embeddings', '/embeddings'] as const;
const USUAL = { choice: '{choice}', input: '{input}', joint: '{instruction}\n{input}' } as const;
const JOINT_WEIGHT = 0.2;
const TEMPERATURE = 0.05;
const ROWS = 32;
/** Components of vectors of length 1 that differ by less are the same. */
const NEAR = 5e-4;

/** Surveys a server. Rejects with Error if it cannot be used in this dialect. */
export async function surveyEmbeddings(
  asking: Asking,
  { path, model: asked, canary, own }: SurveyRequest,
): Promise<Survey> {
  const facts = await askFacts(asking);
  const model = modelOf(facts, asked ?? ownText(own, 'model'));
  const encoding: Encoding = { model: ownText(own, 'input_model') ?? model, dimensions: ownWhole(own.dimensions) };
  if (encoding.model === undefined && facts.models.length > 1) {
    throw new Error(`the server has several models, of which --model names one: ${facts.models.join(', ')}`);
  }
  const send = (at: string, texts: readonly string[]): Promise<Reply> =>
    asking.post(
      at,
      embeddingsBody(
        texts.map((text) => JSON.stringify(text)),
        encoding,
      ),
    );

  const attempts: string[] = [];
  let found: { readonly path: string; readonly width: number } | undefined;
  for (const each of path === undefined ? PATHS : [path]) {
    const read = readReply(await send(each, [canary.input]), each, (body) => vectorsIn(body, 1, encoding));
    if ('problem' in read) attempts.push(read.problem);
    else {
      found = { path: each, width: read.value[0]?.length ?? 0 };
      break;
    }
  }
  if (found === undefined) throw new NotSuchADialect('embeddings', asking.address, attempts);
  const { path: at, width } = found;
  const maxTokens = tokensOf(facts, encoding.model);
  const rows = await mostRows(Math.min(facts.rows ?? ROWS, 300), (texts) => send(at, texts));
  const longTexts = await tryLongTexts(async (text) => longAnswer(await send(at, [text]), encoding), {
    known: maxTokens,
    tolerance: NEAR,
  });
  return {
    options: {
      dialect: 'embeddings',
      ...(model === undefined ? {} : { model }),
      templates: { ...USUAL, ...ownPart(own, 'templates') },
      joint_weight: JOINT_WEIGHT,
      batch: { rows },
    },
    path: at,
    longTexts,
    maxTokens,
    reads: 'text',
    cap: undefined,
    temperature: TEMPERATURE,
    lines: [...facts.lines, `POST ${at}, ${rows} texts a request, vectors of ${width} numbers`],
  };
}

function longAnswer(reply: Reply, encoding: Encoding): LongAnswer {
  if (reply.kind === 'slow') return reply;
  if (reply.kind === 'refused') return { kind: 'refused', limit: reply.failure.tooLong?.limit };
  const [vector] = vectorsIn(reply.body, 1, encoding);
  return { kind: 'numbers', numbers: [...(normalised(vector as Float64Array) ?? [])] };
}

function ownWhole(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) ? value : undefined;
}
