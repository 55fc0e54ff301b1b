/** Costs before and after experience. */
import test from 'ava';
import { type CostProfile, costAt } from '../../../src/engine/cost-profile.ts';
import type { TwoStageProfile } from '../../../src/engine/families/two-stage/profile.ts';
import { jobCost, worstCost } from '../../../src/engine/job-cost.ts';
import { readManifest } from '../../../src/engine/packages/manifest.ts';
import { createRevision, type Revision } from '../../../src/engine/packages/revisions.ts';
import { Estimates, shapeOf } from '../../../src/engine/pool/estimates.ts';

const PROFILE: CostProfile = {
  premise: [
    [1, 1],
    [100, 10],
    [500, 70],
  ],
  choice: [
    [1, 1],
    [100, 11],
  ],
  choiceReadsPremise: false,
  choicesCached: true,
};
const LIMITS = { inputTokens: 500, candidateTokens: 100, choices: 300 };

test('curves are straight between points and beyond them', (t) => {
  t.is(costAt(PROFILE.premise, 1), 1);
  t.is(costAt(PROFILE.premise, 100), 10);
  t.is(costAt(PROFILE.premise, 300), 40);
  t.is(costAt(PROFILE.premise, 600), 85);
  t.is(costAt([], 100), 0);
  t.is(costAt([[5, 2]], 100), 2);
  t.is(jobCost('bi-encoder', PROFILE, { premiseTokens: 100, choices: 5, uncached: 3, choiceTokens: 1 }), 13);
  t.is(worstCost(PROFILE, { family: 'bi-encoder', limits: LIMITS }), 70 + 300 * 11);
  const reading = { ...PROFILE, choiceReadsPremise: true };
  t.is(
    jobCost('nli-cross-encoder', reading, { premiseTokens: 100, choices: 2, uncached: 2, choiceTokens: 0 }),
    10 + 2 * 11,
  );
});

test('runs over packs are counted, and once more without a text where question and choices are new', (t) => {
  // A token costs a millisecond; a run has 100, a window 60.
  const packed = {
    run: [
      [0, 0],
      [1000, 1000],
    ],
    packTokens: 100,
    best: 8,
    window: 60,
    segment: 30,
    windows: 3,
    silent: 10,
  } as const;
  const profileOfPacks: TwoStageProfile = { ...PROFILE, premise: [], choice: [], packed };
  const cost = (premiseTokens: number, choices: number, uncached: number, choiceTokens = 1): number =>
    jobCost('two-stage', profileOfPacks, { premiseTokens, choices, uncached, choiceTokens });
  t.is(cost(17, 5, 0), 20 + 5 * 2);
  t.is(cost(17, 5, 1), 20 + 5 * 2 + (13 + 5 * 2));
  t.is(cost(2, 5, 5), 2 * (5 + 5 * 2));
  t.is(cost(17, 9, 9), 20 + 8 * 2, 'more choices than are read');
  t.is(cost(57, 8, 0, 9), 2 * (60 + 4 * 10), 'two packs');
  t.is(cost(500, 5, 0), 3 * (30 + 5 * 2) + (60 + 5 * 2), 'three windows and the first one whole');
  t.is(cost(500, 8, 0, 9), 3 * 2 * (30 + 7 * 10), 'no room for the first one');
});

const SCORED = { kind: 'scored', probabilities: new Float64Array(2), encoded: 0, waited: 0, tokenize: 0 } as const;

function createProfiledRevision(): Revision {
  const { value: manifest } = readManifest('{}', 'm', 'r1');
  const found = { folder: '', manifest: { ...manifest, limits: LIMITS }, problems: [], signature: '' };
  return { ...createRevision(found, 1), profile: PROFILE };
}

test('estimates learn the density of texts and the speed of the machine', (t) => {
  const revision = createProfiledRevision();
  const estimates = new Estimates();
  const shape = { revision, caller: 'a', premiseLength: 400, choices: 2, choicesLength: 8 };
  const before = estimates.cost(shape, true);
  t.true(estimates.cost(shape, false) > before);
  for (let i = 0; i < 200; i++) {
    estimates.observe(shape, { ...SCORED, inputTokens: 200, infer: 1 }, 2 * costAt(PROFILE.premise, 200));
  }
  const after = estimates.cost(shape, true);
  const real = 2 * costAt(PROFILE.premise, 200);
  t.true(Math.abs(after - real) < 0.05 * real, `${before} → ${after}, real ${real}`);
});

test('a stall is forgotten while nothing is observed: what it refuses is admitted again', (t) => {
  let now = 0;
  const estimates = new Estimates(() => now);
  const shape = { revision: createProfiledRevision(), caller: 'a', premiseLength: 400, choices: 2, choicesLength: 8 };
  const cost = (): number => estimates.cost(shape, true);
  const before = cost();
  for (let i = 0; i < 100; i++) {
    estimates.observe(shape, { ...SCORED, inputTokens: 100, infer: 1 }, 30 * costAt(PROFILE.premise, 100));
  }
  t.true(cost() > 25 * before, `${cost()}`);
  now += 60_000;
  t.true(cost() < 1.05 * before, `${cost()}`);
});

test('while an engine is at work, what is known of its speed is not forgotten', (t) => {
  let now = 0;
  const estimates = new Estimates(() => now);
  const shape = { revision: createProfiledRevision(), caller: 'a', premiseLength: 2000, choices: 2, choicesLength: 8 };
  const took = 6 * costAt(PROFILE.premise, 500);
  const run = (): void => {
    now += took;
    estimates.occupied(shape, took);
  };
  const isRight = (): boolean => Math.abs(estimates.cost(shape, true) - took) < 0.05 * took;
  for (let i = 0; i < 100; i++) {
    run();
    estimates.observe(shape, { ...SCORED, inputTokens: 500, infer: 1 }, took);
  }
  t.true(isRight(), `${estimates.cost(shape, true)}, real ${took}`);
  // Those that are stopped at their deadlines show nothing.
  for (let i = 0; i < 100; i++) run();
  t.true(isRight(), `${estimates.cost(shape, true)}, real ${took}`);
  now += 60_000;
  t.true(estimates.cost(shape, true) < took / 5);
});

test("what strangers send makes nobody else's texts seem longer, and what one sends oneself is forgotten", (t) => {
  let now = 0;
  const estimates = new Estimates(() => now);
  const revision = createProfiledRevision();
  const terms = (tenant: string, keyed: boolean) => ({ tenant, keyed });
  const choices = Array.from({ length: 300 }, (_, place) => `${place} ${'word '.repeat(20)}`);
  const large = (tenant: string, keyed: boolean): number =>
    estimates.cost(shapeOf({ input: '', instruction: '', choices }, revision, terms(tenant, keyed)), false);
  const before = large('acme', true);
  // A syllable of Hangul is three tokens, in the text and in the choices.
  const dense = { input: '각'.repeat(40), instruction: '느', choices: ['각'.repeat(33), '느'.repeat(33)] };
  const shape = shapeOf(dense, revision, terms('acme', false));
  const result = { ...SCORED, inputTokens: 123, choiceTokens: 99, encoded: 2, infer: 1 };
  const took = jobCost('bi-encoder', PROFILE, { premiseTokens: 123, choices: 2, uncached: 2, choiceTokens: 99 });
  for (let i = 0; i < 500; i++) estimates.observe(shape, result, took);
  t.true(Math.abs(large('acme', true) - before) < 0.01 * before, `${before} → ${large('acme', true)}`);
  t.true(Math.abs(large('192.0.2.1', false) - before) < 0.01 * before);
  const own = large('acme', false);
  t.true(own > 2 * before && own <= 4.1 * before, `${before} → ${own}`);
  now += 10 * 60_000;
  t.true(large('acme', false) < 1.01 * before);
});
