/**
 * What follows from a teacher's answers: a lesson from those that are sure, as the distributions that they are, and
 * from people's labels, which count more. A fair sample of the answers judges what helps. Enough of people's labels
 * have a veto, and confidences are fitted to them; fewer judge beside the sample.
 */
import type { PooledText, TeachersWord } from './choose-texts.ts';
import { type Lesson, learn, MIN_EXAMPLES } from './learn.ts';
import { isRight } from './quality.ts';
import type { ScoredExample } from './regression.ts';

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
  for (const [place, { probabilities, vector, word = {} }] of pool.entries()) {
    const { said, corrected } = word;
    const confidence = confidenceOf(word);
    if (corrected !== undefined) labels.push({ probabilities, vector, label: corrected });
    else if (said !== undefined && confidence >= sure)
      answers.push({ probabilities, vector, label: said.indexOf(confidence), said, judges: place < sampled });
  }
  const byPeople = labels.length >= ENOUGH;
  const byPerson = { counts: PERSON_COUNTS, judges: !byPeople, vetoes: byPeople };
  const examples = [...labels.map((each) => ({ ...each, ...byPerson })), ...answers];
  if (examples.length < MIN_EXAMPLES) return undefined;
  const lesson = learn(examples, choices, facts);
  const held = lesson.answers.slice(labels.length);
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
