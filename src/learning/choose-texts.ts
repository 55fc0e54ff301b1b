/**
 * Which of many texts without labels are worth asking a teacher about. Every second one is the next as they come: all
 * up to the last of these are a fair sample, by which what is learned can be judged. The others are those that promise
 * most: the model is unsure of them, they are unlike the texts that were taken before, and few of those got the same
 * answer. Each text is chosen given those before it, so a larger number only adds to a smaller one.
 */

/** What the model said of a text: its probabilities, and its vector of length 1 where it has one. */
export interface ScoredText {
  readonly probabilities: Float64Array;
  readonly vector?: Float32Array | undefined;
}

/**
 * The places of `wanted` more texts, or of all that are left if these are fewer, in the order of choosing. `before`:
 * which texts were taken before. `texts` are in an order that has nothing to do with what they say. The same texts give
 * the same choice; the time grows with the number of texts times that of the taken ones.
 */
export function chooseTexts(
  texts: readonly ScoredText[],
  before: readonly boolean[],
  wanted: number,
): readonly number[] {
  const views = texts.map(({ probabilities }) => viewOf(probabilities));
  const distances = new Float64Array(texts.length).fill(1);
  const answers = new Map<number, number>();
  const taken = texts.map(() => false);
  const take = (place: number): void => {
    taken[place] = true;
    const { answer } = views[place] as View;
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
    const { vector } = texts[place] as ScoredText;
    if (vector === undefined) return;
    for (const [other, { vector: its }] of texts.entries()) {
      if (taken[other] === true || its === undefined) continue;
      distances[other] = Math.min(distances[other] as number, distance(vector, its));
    }
  };
  for (const [place, is] of before.entries()) if (is) take(place);

  const chosen: number[] = [];
  let next = 0;
  while (chosen.length < wanted) {
    while (taken[next] === true) next++;
    if (next >= texts.length) break;
    const place = chosen.length % 2 === 0 ? next : mostPromising();
    take(place);
    chosen.push(place);
  }
  return chosen;

  function mostPromising(): number {
    let found = { place: next, promise: Number.NEGATIVE_INFINITY };
    for (let place = next; place < texts.length; place++) {
      if (taken[place] === true) continue;
      const { answer, doubt } = views[place] as View;
      const promise = (doubt * (distances[place] as number)) / (1 + (answers.get(answer) ?? 0));
      if (promise > found.promise) found = { place, promise };
    }
    return found.place;
  }
}

/** The answer, and how little it leads: 1 less the distance to the second one. */
interface View {
  readonly answer: number;
  readonly doubt: number;
}

function viewOf(probabilities: Float64Array): View {
  let [first, second, answer] = [0, 0, 0];
  for (const [k, p] of probabilities.entries()) {
    if (p > first) [second, first, answer] = [first, p, k];
    else if (p > second) second = p;
  }
  return { answer, doubt: 1 - (first - second) };
}

/** From 0 for the same direction to 2 for the opposite one. */
function distance(a: Float32Array, b: Float32Array): number {
  let product = 0;
  for (let j = 0; j < a.length; j++) product += (a[j] as number) * (b[j] as number);
  return 1 - product;
}
