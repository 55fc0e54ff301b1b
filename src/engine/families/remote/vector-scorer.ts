/**
 * For a server that encodes one text at a time: a bi-encoder. A choice's logit is the cosine of its vector and the
 * premise's. Vectors of choices are kept only if a row's result does not depend on the rows beside it: otherwise a
 * decision would depend on earlier ones.
 */
import type { Premise } from '../family.ts';
import { dot, mixed, normalised } from '../vectors.ts';
import { malformed } from './call-failed.ts';
import type { InferenceJob } from './calls.ts';
import { ofChoices, type ReadChoice, type Scorer } from './scorer.ts';

/** Gets vectors from a server, of any length above 0, with separate requests for the choices and for the premise. */
export interface RemoteEncoder {
  /** One vector for each choice. Rejects with CallFailed. */
  choices(choices: readonly ReadChoice[], call: InferenceJob): Promise<readonly Float64Array[]>;
  /** The vector of the premise, or the two that are mixed. Rejects with CallFailed. */
  premise(premise: Premise, call: InferenceJob): Promise<readonly Float64Array[]>;
}

/** What the vectors of a premise are made of, as `RemoteEncoder` returns them: those that have any weight. */
export function premiseParts<T>(input: T, joint: T | undefined, jointWeight: number): readonly T[] {
  if (jointWeight === 0) return [input];
  return jointWeight === 1 ? [joint ?? input] : [input, joint ?? input];
}

/**
 * `jointWeight`: the share of the premise's second vector, if there are two. `keeps`: whether vectors may be kept. All
 * vectors must have the width of the first ones: with another width the server has another model.
 */
export function createVectorScorer(encoder: RemoteEncoder, jointWeight: number, keeps: boolean): Scorer {
  let width: number | undefined;

  const encodeMissing = (choices: readonly ReadChoice[], call: InferenceJob): Promise<readonly Float64Array[]> =>
    encoder.choices(choices, call).catch((error: unknown) => {
      throw ofChoices(error, choices);
    });

  const encodeChoices = async (choices: readonly ReadChoice[], call: InferenceJob) => {
    const vectors = keeps ? call.vectors : undefined;
    const found = choices.map(({ text }) => vectors?.get(text));
    const missing = choices.filter((_, i) => found[i] === undefined);
    const made = missing.length === 0 ? [] : (await encodeMissing(missing, call)).map(directed);
    const byText = new Map(missing.map(({ text }, i) => [text, made[i] as Float32Array]));
    for (const [text, vector] of byText) vectors?.set(text, vector);
    return { all: choices.map(({ text }, i) => found[i] ?? (byText.get(text) as Float32Array)), read: missing.length };
  };

  return {
    choiceReadsPremise: false,
    async logits(premise, choices, call) {
      const [{ all, read }, parts] = await together([encodeChoices(choices, call), encoder.premise(premise, call)]);
      const [first, second] = parts.map(directed);
      if (first === undefined || [...all, second ?? first].some(({ length }) => length !== first.length)) {
        throw malformed('the server returned vectors of several lengths');
      }
      width ??= first.length;
      if (first.length !== width)
        throw malformed(`the server returned vectors of ${first.length} numbers, not ${width}`);
      const vector = second === undefined ? first : mixed(first, second, jointWeight);
      return { logits: Float64Array.from(all, (each) => dot(vector, each)), read, vector };
    },
    async prepare(choices, call) {
      if (keeps) await encodeChoices(choices, call);
    },
  };
}

/** A vector that a server made, at length 1. */
function directed(row: Float64Array): Float32Array {
  const vector = normalised(row);
  if (vector === undefined) throw malformed('the server returned a vector without direction');
  return vector;
}

/** Both results, once both have ended. */
async function together<A, B>([a, b]: readonly [Promise<A>, Promise<B>]): Promise<readonly [A, B]> {
  await Promise.allSettled([a, b]);
  return [await a, await b];
}
