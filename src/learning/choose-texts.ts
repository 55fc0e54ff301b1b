/**
 * Which of many texts without labels are worth asking a teacher about. Every second one is the next as they come: all
 * up to the last of these are a fair sample, by which what is learned can be judged. The others are those that promise
 * most: the model is unsure of them, they are unlike the texts that were taken before, and few of those got the same
 * answer. Each text is chosen given those before it, so a larger number only adds to a smaller one.
 */

/** What came of asking about a text. */
export interface TeachersWord {
  /** The teacher's distribution over the choices in code-unit order; undefined if it does not take the text. */
  readonly said?: Float64Array | undefined;
  /** The place of the choice that a person put in place of the teacher's. */
  readonly corrected?: number | undefined;
}

/** A text that could be asked about: what the model says of it, and what came of asking. */
export interface PooledText {
  readonly probabilities: Float64Array;
  /** Of length 1, where the model has one. */
  readonly vector?: Float32Array | undefined;
  /** Undefined while nobody was asked. */
  readonly word?: TeachersWord | undefined;
}

/**
 * The places of `wanted` more texts that nobody was asked about, or of all that are left if these are fewer, in the
 * order of choosing. `texts` are in an order that has nothing to do with what they say. The same texts give the same
 * choice; the time grows with the number of texts times that of the taken ones.
 */
export function chooseTexts(texts: readonly PooledText[], wanted: number): readonly number[] {
  const left = new Set(texts.map(candidateOf));
  const answers = new Map<number, number>();
  const promiseOf = ({ answer, doubt, distance }: Candidate): number =>
    (doubt * distance) / (1 + (answers.get(answer) ?? 0));
  const take = (taken: Candidate): void => {
    left.delete(taken);
    answers.set(taken.answer, (answers.get(taken.answer) ?? 0) + 1);
    for (const other of left) other.distance = Math.min(other.distance, distanceOf(taken, other));
  };
  for (const candidate of left) if (texts[candidate.place]?.word !== undefined) take(candidate);
  const chosen: number[] = [];
  while (chosen.length < wanted) {
    let [best] = left;
    if (best === undefined) break;
    const isNext = chosen.length % 2 === 0;
    for (const other of isNext ? [] : left) if (promiseOf(other) > promiseOf(best)) best = other;
    take(best);
    chosen.push(best.place);
  }
  return chosen;
}

/** A text that may be taken. `doubt`: how little the model's answer leads, 1 less the distance to the second. */
interface Candidate extends Pick<PooledText, 'vector'> {
  readonly place: number;
  readonly answer: number;
  readonly doubt: number;
  /** To the taken text that is most like it, 1 at most. */
  distance: number;
}

function candidateOf({ probabilities, vector }: PooledText, place: number): Candidate {
  const [first = 0, second = 0] = probabilities.toSorted().reverse();
  return { place, vector, answer: probabilities.indexOf(first), doubt: 1 - (first - second), distance: 1 };
}

/** From 0 for the same direction to 2 for the opposite one; 1 where a vector is missing. */
function distanceOf({ vector: a }: Candidate, { vector: b }: Candidate): number {
  if (a === undefined || b === undefined) return 1;
  let product = 0;
  for (let j = 0; j < a.length; j++) product += (a[j] as number) * (b[j] as number);
  return 1 - product;
}
