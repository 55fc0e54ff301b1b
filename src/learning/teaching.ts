/**
 * Learning from a teacher, a model that is asked about texts without labels.
 *
 * Which of many texts without labels are worth asking a teacher about. Every second one is the next as they come: all
 * up to the last of these are a fair sample, by which what is learned can be judged. The others are those that promise
 * most: the model is unsure of them, they are unlike the texts that were taken before, and few of those got the same
 * answer. Each text is chosen given those before it, so a larger number only adds to a smaller one.
 *
 * From the answers follows a lesson: from those that are sure, as distributions, joined with what the model itself
 * says, and from people's labels, which count more. The fair sample of the answers judges what helps. Enough of
 * people's labels have a veto, and confidences are fitted to them; fewer judge beside the sample.
 */
import { weightedProduct } from '../engine/tempered.ts';
import { type Lesson, learn, MIN_EXAMPLES } from './learn.ts';
import { isRight } from './quality.ts';
import type { ScoredExample } from './regression.ts';

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

/** Texts, and how many of them are answered alike, held out, before and after a lesson. */
interface Agreement {
  readonly texts: number;
  readonly before: number;
  readonly after: number;
}

/** A lesson, what went into it, and how it agrees with those who taught it. */
export interface TaughtLesson {
  readonly lesson: Lesson;
  /** The teacher's answers, and people's labels. */
  readonly answers: number;
  readonly labels: number;
  /** Whether people's labels were enough for a veto. */
  readonly byPeople: boolean;
  readonly withTeacher: Agreement;
  readonly withPeople: Agreement;
}

/** How many of a teacher's answers one label of a person counts as. */
const PERSON_COUNTS = 4;
/**
 * The weight of what the model itself says beside its teacher's word. A language model is surer than it is right, and
 * without this a catalog learned its errors: bench/results/2026-11-27-teach.md.
 */
const OWN_WEIGHT = 0.75;
/** So many labels have a veto, and so large a sample judges alone. */
const ENOUGH = 30;

/** The confidence of an answer; 0 where there is none. */
export function confidenceOf({ said = new Float64Array() }: TeachersWord): number {
  return Math.max(0, ...said);
}

/**
 * The lesson, or undefined if answers and labels are fewer than MIN_EXAMPLES. `pool`: all texts that could be asked
 * about, in the order in which `chooseTexts` had them. `sure`: the confidence from which on an answer is learned from.
 * The rest as for `learn`.
 */
export function learnTaught(
  { pool, people, sure }: { pool: readonly PooledText[]; people: readonly ScoredExample[]; sure: number },
  choices: readonly string[],
  facts: Parameters<typeof learn>[2],
): TaughtLesson | undefined {
  // Every text before the first one that nobody was asked about was asked about as it came: a fair sample.
  const unasked = pool.findIndex(({ word }) => word === undefined);
  const sampled = unasked === -1 || unasked < ENOUGH ? pool.length : unasked;
  const labels = [...people];
  const answers: ScoredExample[] = [];
  /** What the teacher alone chose. */
  const told: string[] = [];
  for (const [place, { probabilities, vector, word = {} }] of pool.entries()) {
    const { said, corrected } = word;
    const confidence = confidenceOf(word);
    if (corrected !== undefined) labels.push({ probabilities, vector, label: corrected });
    else if (said !== undefined && confidence >= sure) {
      const joined = weightedProduct([said, probabilities], [1, OWN_WEIGHT]);
      const highest = Math.max(...joined);
      // Where the two contradict each other and neither is much surer, nothing is learned.
      if (highest < sure) continue;
      const label = joined.indexOf(highest);
      answers.push({ probabilities, vector, label, said: joined, judges: place < sampled });
      told.push(choices[said.indexOf(confidence)] as string);
    }
  }
  const byPeople = labels.length >= ENOUGH;
  const byPerson = { counts: PERSON_COUNTS, judges: !byPeople, vetoes: byPeople };
  const examples = [...labels.map((each) => ({ ...each, ...byPerson })), ...answers];
  if (examples.length < MIN_EXAMPLES) return undefined;
  const lesson = learn(examples, choices, facts);
  const held = told.map((label, place) => {
    const { before, after } = lesson.answers[labels.length + place] as Lesson['answers'][number];
    return { before: { ...before, label }, after: { ...after, label } };
  });
  return {
    lesson,
    answers: answers.length,
    labels: labels.length,
    byPeople,
    withTeacher: agreement(held.filter((_, place) => answers[place]?.judges === true)),
    withPeople: agreement(lesson.answers.slice(0, labels.length)),
  };
}

function agreement(answers: Lesson['answers']): Agreement {
  return {
    texts: answers.length,
    before: answers.filter(({ before }) => isRight(before)).length,
    after: answers.filter(({ after }) => isRight(after)).length,
  };
}
