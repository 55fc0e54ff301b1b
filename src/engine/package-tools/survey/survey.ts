/** Surveys of servers, by what they speak. */
import type { ServerOptions } from '../../families/remote/server-options.ts';
import { createAsking } from './asking.ts';
import { surveyEmbeddings } from './embeddings.ts';
import type { Survey, SurveyRequest } from './findings.ts';
import { type Frame, surveyOpenInference } from './open-inference.ts';
import { surveyRerank } from './rerank.ts';

/** What a server may speak of which a package is made. */
export const ADDABLE_DIALECTS = ['rerank', 'embeddings', 'open-inference'] as const;
export type AddableDialect = (typeof ADDABLE_DIALECTS)[number];

const BY_HTTP = { rerank: surveyRerank, embeddings: surveyEmbeddings } as const;

/** Asks a server. Rejects with Error if it cannot be used so. `frame`: of the model's tokenizer, if there is one. */
export async function surveyServer(
  dialect: AddableDialect,
  server: ServerOptions,
  frame: Frame | undefined,
  request: SurveyRequest,
): Promise<Survey> {
  if (dialect === 'open-inference') {
    if (frame === undefined) {
      throw new Error(
        "--tokenizer FILE is needed, the model's tokenizer.json: rows are made here, and the protocol has no word for refusing a text that is too long",
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
