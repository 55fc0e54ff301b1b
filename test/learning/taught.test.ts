/** What is learned from a teacher's answers, which texts it is asked about, and which of them are twins. */
import { readFileSync } from 'node:fs';
import test from 'ava';
import { Learned } from '../../src/domain/learned.ts';
import { judge, learn } from '../../src/learning/learn.ts';
import { firstOfEach } from '../../src/learning/near-repeats.ts';
import { qualityOf } from '../../src/learning/quality.ts';
import { fitParameters, regressionData, type ScoredExample } from '../../src/learning/regression.ts';
import { chooseTexts, learnTaught, type PooledText } from '../../src/learning/teaching.ts';
import { random } from '../support/random.ts';

const CHOICES = ['a', 'b', 'c', 'd'];
const FACTS = { model: 'm@r1', basis: 'basis' };
const now = new Date(0);

/** Texts whose vectors tell what they are, and of which the model says the right choice in the share `hits`. */
function textsOf(count: number, { hits = 0.5, seed = 1 } = {}): readonly ScoredExample[] {
  const next = random(seed);
  return Array.from({ length: count }, () => {
    const label = Math.floor(4 * next());
    const vector = Float32Array.from({ length: 8 }, (_, j) => (j === label ? 1 : 0) + 0.6 * (next() - 0.5));
    const said = next() < hits ? label : Math.floor(4 * next());
    return { label, vector: vector.map((x) => x / Math.hypot(...vector)), probabilities: sureOf(said, 0.4) };
  });
}

function sureOf(choice: number, confidence: number): Float64Array {
  return Float64Array.from(CHOICES, (_, k) => (k === choice ? confidence : (1 - confidence) / 3));
}

/** What a teacher says that is right in the share `right`; its confidence says nothing. */
function asked(texts: readonly ScoredExample[], right: number, confidence = 0.9): readonly PooledText[] {
  const next = random(7);
  return texts.map(({ probabilities, vector, label }) => {
    const choice = next() < right ? label : (label + 1 + Math.floor(3 * next())) % 4;
    return { probabilities, vector, word: { said: sureOf(choice, confidence) } };
  });
}

const rightOf = (
  record: ConstructorParameters<typeof Learned>[0] | undefined,
  texts: readonly ScoredExample[],
): number => {
  const state = record === undefined ? undefined : new Learned(record);
  const right = texts.filter(({ probabilities, vector, label }) => {
    const decided = state?.decide(probabilities, vector) ?? probabilities;
    return decided.indexOf(Math.max(...decided)) === label;
  });
  return right.length / texts.length;
};

test('a label that is certain is the same as the distribution that says so, bit for bit', (t) => {
  const texts = textsOf(60);
  const fittedTo = (examples: readonly ScoredExample[]) =>
    fitParameters(regressionData(examples), new Int32Array(60).fill(1), { scale: 0.5, bias: 1, weights: 0.15 });
  t.deepEqual(fittedTo(texts.map((each) => ({ ...each, said: sureOf(each.label, 1), counts: 1 }))), fittedTo(texts));
});

test('an example that counts twice is as two in a fit', (t) => {
  const data = textsOf(40);
  const twice = learn([...data, ...data], CHOICES, FACTS, now);
  const heavy = learn(
    data.map((each) => ({ ...each, counts: 2 })),
    CHOICES,
    FACTS,
    now,
  );
  // The contrast and the folds see other numbers of examples; the fits are nearly the same.
  t.is(heavy.record?.rung, twice.record?.rung);
  t.true(
    Math.abs(rightOf(heavy.record, textsOf(500, { seed: 3 })) - rightOf(twice.record, textsOf(500, { seed: 3 }))) <
      0.02,
  );
});

test('the pupil of a teacher that errs at random is right more often than its teacher', (t) => {
  const unseen = textsOf(1000, { seed: 5 });
  const before = rightOf(undefined, unseen);
  for (const right of [0.7, 0.9]) {
    const taught = learnTaught({ pool: asked(textsOf(400), right), people: [], sure: 0.5 }, CHOICES, FACTS);
    const after = rightOf(taught?.lesson.record, unseen);
    t.true(after > Math.max(right, before), `${right}: ${before} to ${after}`);
    t.is(taught?.byPeople, false);
    t.is(taught?.answers, 400);
    t.true((taught?.withTeacher.after ?? 0) > (taught?.withTeacher.before ?? 0));
  }
});

test('a teacher who knows nothing teaches nothing, and unsure answers are not learned from', (t) => {
  const none = learnTaught({ pool: asked(textsOf(400), 0.25), people: [], sure: 0.5 }, CHOICES, FACTS);
  t.true(
    rightOf(none?.lesson.record, textsOf(1000, { seed: 5 })) >= rightOf(undefined, textsOf(1000, { seed: 5 })) - 0.01,
  );
  t.is(learnTaught({ pool: asked(textsOf(400), 0.9, 0.4), people: [], sure: 0.5 }, CHOICES, FACTS), undefined);
});

test('a teacher that always errs where the model is surer than it does not teach its error', (t) => {
  const sure = (count: number, seed: number) =>
    textsOf(count, { seed }).map((each) => ({ ...each, probabilities: sureOf(each.label, 0.97) }));
  const pool = sure(300, 1).map(({ probabilities, vector, label }) => ({
    ...{ probabilities, vector },
    word: { said: sureOf(label === 2 ? 3 : label, 0.85) },
  }));
  const taught = learnTaught({ pool, people: [], sure: 0.5 }, CHOICES, FACTS);
  t.true(rightOf(taught?.lesson.record, sure(500, 5)) > 0.97);
});

test('people have a veto: what agrees with the teacher and not with them is not taken', (t) => {
  const people = textsOf(60, { seed: 11, hits: 0.9 });
  // It says the choice after the right one, always.
  const wrong = textsOf(300, { hits: 0.9 }).map(({ probabilities, vector, label }) => ({
    ...{ probabilities, vector },
    word: { said: sureOf((label + 1) % 4, 0.95) },
  }));
  const fooled = learnTaught({ pool: wrong, people: [], sure: 0.5 }, CHOICES, FACTS);
  t.true(rightOf(fooled?.lesson.record, textsOf(500, { seed: 5 })) < 0.5);
  const judged = learnTaught({ pool: wrong, people, sure: 0.5 }, CHOICES, FACTS);
  t.like(judged, { byPeople: true, labels: 60, answers: 300 });
  const unseen = textsOf(500, { seed: 5, hits: 0.9 });
  t.true(rightOf(judged?.lesson.record, unseen) >= rightOf(undefined, unseen) - 0.01);
  // A teacher that is right is not vetoed, and confidences are those of being right: here it is always .7 sure.
  const sound = asked(textsOf(300), 0.9, 0.7);
  const eceOf = (labels: readonly ScoredExample[]): number => {
    const { lesson } = learnTaught({ pool: sound, people: labels, sure: 0.5 }, CHOICES, FACTS) ?? {};
    const state = new Learned(lesson?.record as NonNullable<NonNullable<typeof lesson>['record']>);
    const judged = unseen.map(({ probabilities, vector, label }) => {
      const decided = state.decide(probabilities, vector);
      return judge(CHOICES, label, (k) => decided[k] as number);
    });
    return qualityOf(judged).ece;
  };
  t.true(eceOf([]) > 0.15, `${eceOf([])}`);
  t.true(eceOf(people) < 0.1, `${eceOf(people)}`);
  // A person's label in place of an answer counts as one of people's.
  const corrected = wrong.map((each, place) => ({
    ...each,
    word: place < 40 ? { ...each.word, corrected: place % 4 } : each.word,
  }));
  t.like(learnTaught({ pool: corrected, people: [], sure: 0.5 }, CHOICES, FACTS), {
    byPeople: true,
    labels: 40,
    answers: 260,
  });
});

test('half of the chosen texts come as they are, the others are doubtful and of every answer; more only adds', (t) => {
  const next = random(2);
  // One answer in forty is of the rare kind, and the doubt of each text differs.
  const texts = Array.from({ length: 400 }, (_, i) => ({
    probabilities: sureOf(i % 40 === 39 ? 3 : i % 3, 0.3 + 0.6 * next()),
  }));
  const some = chooseTexts(texts, 40);
  t.is(new Set(some).size, 40);
  t.deepEqual(chooseTexts(texts, 80).slice(0, 40), some);
  // Everything up to the twentieth text that came as it is was taken.
  const taken = new Set(some);
  const sampled = texts.findIndex((_, place) => !taken.has(place));
  t.true(sampled >= 20, `${sampled}`);
  const promising = some.filter((_, place) => place % 2 === 1);
  const meanOf = (places: readonly number[]): number =>
    places.reduce((sum, place) => sum + Math.max(...(texts[place]?.probabilities ?? [])), 0) / places.length;
  t.true(meanOf(promising) < meanOf([...texts.keys()]) - 0.1);
  t.true(promising.filter((place) => place % 40 === 39).length >= 3);
  // What was taken before is not taken again, and all that are left are fewer than are wanted.
  const before = texts.map((text, place) => (taken.has(place) ? { ...text, word: {} } : text));
  const rest = chooseTexts(before, 1000);
  t.is(new Set([...rest, ...some]).size, 400);
  t.is(rest.length, 360);

  // Texts that are unlike those before come first.
  const vectors = Array.from({ length: 30 }, (_, i) => ({
    probabilities: sureOf(0, 0.4),
    vector: Float32Array.from({ length: 6 }, (_, j) => Number(j === (i < 25 ? 0 : i - 24))),
  }));
  const unlike = chooseTexts(vectors, 10);
  t.deepEqual(unlike.filter((_, place) => place % 2 === 1).toSorted(), [25, 26, 27, 28, 29]);
});

interface Row {
  readonly input: string;
  readonly label: string;
}

const SIGNATURE = `

Kind regards,
Maria Gonzalez, Senior Coordinator, Example Logistics
Tel. +49 30 1234567, this message may contain confidential information.`;

const AROUND: Readonly<Record<string, (text: string) => string>> = {
  greeting: (text) => `Dear team, ${text}`,
  'in capitals': (text) => `URGENT: ${text.toUpperCase()}!`,
  signature: (text) => `${text}${SIGNATURE}`,
  'reply that quotes it': (text) => `Any news on this?\n> ${text}`,
};

const rows = (set: string): readonly Row[] =>
  readFileSync(new URL(`../../bench/eval/sample/${set}.jsonl`, import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Row)
    .filter(({ input }) => input !== undefined)
    .slice(0, 60);

const repeats = (texts: readonly Row[]): number => firstOfEach(texts).filter((first, place) => first !== place).length;

for (const set of ['banking77', 'clinc150', 'metatool']) {
  const texts = rows(set);
  const own = repeats(texts);
  for (const [name, around] of Object.entries(AROUND)) {
    test(`${set}: the twin with another ${name} is found`, (t) => {
      t.true(texts.length > 20);
      const twins = texts.map(({ input, label }) => ({ input: around(input), label }));
      const first = firstOfEach([...texts, ...twins]).slice(texts.length);
      t.true(first.filter((place) => place < texts.length).length >= 0.95 * texts.length);
    });
  }

  test(`${set}: texts that share a signature are no twins for it`, (t) => {
    t.true(own <= 0.1 * texts.length);
    t.true(repeats(texts.map(({ input, label }) => ({ input: input + SIGNATURE, label }))) <= own + 1);
  });
}

test('the same text under two labels stays twice', (t) => {
  const input = 'I want my money back for this order';
  t.deepEqual(
    firstOfEach([
      { input, label: 'yes' },
      { input: 'I do not want my money back for this order', label: 'no' },
      { input: `Hello, ${input}`, label: 'yes' },
    ]),
    [0, 1, 0],
  );
});
