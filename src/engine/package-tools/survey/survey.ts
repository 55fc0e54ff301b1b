/** Surveys a server in the dialect that it speaks. */
import type { ServerOptions } from '../../families/remote/server-options.ts';
import type { DialectName } from '../../packages/manifest.ts';
import { createAsking } from './asking.ts';
import { surveyEmbeddings } from './embeddings.ts';
import type { Survey, SurveyRequest } from './findings.ts';
import { type Frame, surveyOpenInference } from './open-inference.ts';
import { surveyRerank } from './rerank.ts';
import { surveySystemOne } from './system-one.ts';

const BY_HTTP = { rerank: surveyRerank, embeddings: surveyEmbeddings, 'system-one': surveySystemOne } as const;

/**
 * Surveys a server. Rejects with Error if it cannot be used in the dialect. `frame`: that of the model's tokenizer, if
 * there is one.
 */
export async function surveyServer(
  dialect: DialectName,
  server: ServerOptions,
  frame: Frame | undefined,
  request: SurveyRequest,
): Promise<Survey> {
  if (dialect === 'open-inference') {
    if (frame === undefined) {
      throw new Error(
        "--tokenizer FILE is needed, the model's tokenizer.json: rows are made here, and the protocol has no way to refuse a text that is too long",
      );
    }
    return await surveyOpenInference(server, frame, request);
  }
  const asking = await createAsking(server);
  try {
    return await BY_HTTP[dialect](asking, request);
  } finally {
    asking.close();
  }
}
