/**
 * For a server that encodes one text at a time: a bi-encoder. A choice's logit is the cosine of its vector and the
 * premise's. Vectors of choices are kept only if a row's result does not depend on the rows beside it: otherwise a
 * decision would depend on those before it.
 */
import { dot } from '../probabilities.ts';
import { malformed } from '../remote/call-failed.ts';
import type { JobCall } from '../remote/calls.ts';
import { mixed, normalised } from '../vectors.ts';
import type { InferRows } from './infer-rows.ts';
import type { Returns } from './options.ts';
import type { RowMaker } from './row-maker.ts';
import type { ReadChoice, Scorer } from './scorer.ts';
import type { Row } from './tensors.ts';

/** `keeps`: whether vectors of choices may be kept. */
export function createEmbeddingScorer(
  { choice: choiceRow, input, joint, jointWeight }: Extract<Returns, { kind: 'embedding' }>,
  rowMaker: RowMaker,
  infer: InferRows,
  keeps: boolean,
): Scorer {
  const encode = async (rows: readonly Row[], call: JobCall): Promise<readonly Float32Array[]> =>
    (await infer(rows, call)).map((row) => {
      const vector = normalised(row);
      if (vector === undefined) throw malformed('the server returned a vector without direction');
      return vector;
    });

  const encodeChoices = async (choices: readonly ReadChoice[], call: JobCall) => {
    const vectors = keeps ? call.vectors : undefined;
    const found = choices.map(({ text }) => vectors?.get(text));
    const missing = choices.filter((_, i) => found[i] === undefined);
    const made = await encode(await rowMaker.ofChoices(choiceRow, undefined, missing, call.signal), call);
    const byText = new Map(missing.map(({ text }, i) => [text, made[i] as Float32Array]));
    for (const [text, vector] of byText) vectors?.set(text, vector);
    return { all: choices.map(({ text }, i) => found[i] ?? (byText.get(text) as Float32Array)), read: missing.length };
  };

  return {
    choiceReadsPremise: false,
    async logits(premise, choices, call) {
      const weights = [
        { rule: input, weight: 1 - jointWeight },
        { rule: joint ?? input, weight: jointWeight },
      ].filter(({ weight }) => weight > 0);
      // The premise's rows are requests of their own: beside choices, they would share them with now more, now fewer.
      const rows: Row[] = [];
      for (const { rule } of weights) rows.push(await rowMaker.ofPremise(rule, premise, call.signal));
      const [{ all, read }, parts] = await together([encodeChoices(choices, call), encode(rows, call)]);
      const [first, second] = parts;
      const vector = first && second ? mixed(first, second, jointWeight) : first;
      if (vector === undefined || all.some(({ length }) => length !== vector.length)) {
        throw malformed('the server returned vectors of several lengths');
      }
      return { logits: Float64Array.from(all, (each) => dot(vector, each)), read };
    },
    async prepare(choices, call) {
      if (keeps) await encodeChoices(choices, call);
    },
  };
}

/** Both results, once both have ended. */
async function together<A, B>([a, b]: readonly [Promise<A>, Promise<B>]): Promise<readonly [A, B]> {
  await Promise.allSettled([a, b]);
  return [await a, await b];
}
