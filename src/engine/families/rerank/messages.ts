/** Bodies of requests, and scores in answers. */
import { finiteNumber, inOrder, listIn, objectOf } from '../remote/http/reading.ts';
import type { RerankOptions, RerankShape } from './options.ts';

/** A request for the scores of all documents. `query` and `documents` are JSON texts of strings. */
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
    // Some return the best few where it is not said.
    ...(shape === 'documents' ? [`"top_n":${documents.length}`] : []),
    ...(ask === 'raw_scores' ? ['"raw_scores":true'] : []),
    ...(ask === 'use_activation' ? ['"use_activation":false'] : []),
    ...(refuses ? ['"truncate":false'] : []),
  ];
  return `{${fields.join(',')}}`;
}

/**
 * The score of each of `count` documents, by the index that the server gives it, in the order of the documents. Throws
 * CallFailed `malformed` unless each has one, and one that is a finite number.
 */
export function scoresIn(answer: unknown, shape: RerankShape, count: number): readonly number[] {
  const list = Array.isArray(answer) || shape === 'texts' ? answer : objectOf(answer).results;
  return inOrder(listIn(list, 'results'), count, (result) =>
    // A bare list has this name in both shapes.
    finiteNumber(result.relevance_score ?? result.score, shape === 'texts' ? 'score' : 'relevance_score'),
  );
}
