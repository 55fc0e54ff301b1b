/** Writes the bodies of requests, and reads the vectors in answers. */
import { malformed } from '../remote/call-failed.ts';
import { finiteNumber, inOrder, listIn, objectOf } from '../remote/http/reading.ts';
import type { Encoding } from './options.ts';

/** The body of a request for vectors. `texts` are strings written as JSON. */
export function embeddingsBody(texts: readonly string[], { model, dimensions }: Encoding): string {
  const fields = [
    ...(model === undefined ? [] : [`"model":${JSON.stringify(model)}`]),
    `"input":[${texts.join(',')}]`,
    '"encoding_format":"float"',
    ...(dimensions === undefined ? [] : [`"dimensions":${dimensions}`]),
  ];
  return `{${fields.join(',')}}`;
}

/**
 * The vector of each of `count` texts, by the index that the server gives it. Throws CallFailed `malformed` unless each
 * has one of finite numbers, of the width that was asked for.
 */
export function vectorsIn(answer: unknown, count: number, { dimensions }: Encoding): readonly Float64Array[] {
  return inOrder(listIn(objectOf(answer).data, 'data'), count, ({ embedding }) => {
    const numbers = listIn(embedding, 'numbers of an embedding');
    if (numbers.length === 0 || numbers.length !== (dimensions ?? numbers.length)) {
      throw malformed(`an embedding has ${numbers.length} numbers`);
    }
    return Float64Array.from(numbers, (value) => finiteNumber(value, 'number of an embedding'));
  });
}
