/** Writes the bodies of requests, and reads the scores in answers. */
import { finiteNumber, inOrder, listIn, objectOf } from '../remote/http/reading.ts';
import type { RerankOptions, RerankShape } from './options.ts';

/** The body of a request for the scores of all documents. `query` and `documents` are strings written as JSON. */
export function rerankBody(
  query: string,
  documents: readonly string[],
  { shape, model, scores, refuses }: Pick<RerankOptions, 'shape' | 'model' | 'scores' | 'refuses'>,
): string {
  const ask = scores.kind === 'logit' ? scores.ask : undefined;
  const fields = [
    ...(model === undefined ? [] : [`"model":${JSON.stringify(model)}`]),
    `"query":${query}`,
    `"${shape}":[${documents.join(',')}]`,
    // Some servers return only the best few if nothing is said.
    ...(shape === 'documents' ? [`"top_n":${documents.length}`] : []),
    ...(ask === 'raw_scores' ? ['"raw_scores":true'] : []),
    ...(ask === 'use_activation' ? ['"use_activation":false'] : []),
    ...(refuses ? ['"truncate":false'] : []),
  ];
  return `{${fields.join(',')}}`;
}

/**
 * The score of each of `count` documents, by the index that the server gives it, in the order of the documents. Throws
 * CallFailed `malformed` unless each has one that is a finite number.
 */
export function scoresIn(answer: unknown, shape: RerankShape, count: number): readonly number[] {
  const list = Array.isArray(answer) || shape === 'texts' ? answer : objectOf(answer).results;
  return inOrder(listIn(list, 'results'), count, (result) =>
    // A bare list may call it `score` in either shape.
    finiteNumber(result.relevance_score ?? result.score, shape === 'texts' ? 'score' : 'relevance_score'),
  );
}
