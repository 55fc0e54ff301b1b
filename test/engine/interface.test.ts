/**
 * What callers may expect of any engine: the real pool with a small model, the mock, and the function that tests
 * and benchmarks use.
 */
import test, { type ExecutionContext } from 'ava';
import { createInstantEngine } from '../../bench/shell/instant-engine.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { EngineClosing, JobCanceled, JobDeadlinePassed, ModelUnavailable } from '../../src/engine/errors.ts';
import { createMockEngine } from '../../src/mock/mock-engine.ts';
import { createScriptedEngine } from '../support/scripted-engine.ts';
import { job, startEngine, terms } from './support/engine.ts';
import { modelsFolder, TINY } from './support/packages.ts';

interface Kind {
  readonly start: (t: ExecutionContext) => Engine | Promise<Engine>;
  /** Whether it counts tokens; the others take whatever they are given. */
  readonly counts: boolean;
}

const KINDS: Readonly<Record<string, Kind>> = {
  pool: {
    start: async (t) => {
      return startEngine(t, { modelsDir: await modelsFolder(t, TINY) });
    },
    counts: true,
  },
  mock: {
    start: () => {
      const model = { id: 'tiny', status: 'ready' } as const;
      const limits = { inputTokens: 32, candidateTokens: 8, choices: 20 };
      return createMockEngine(
        [
          { ...model, revision: 'r1' },
          { ...model, revision: 'r0' },
        ],
        limits,
      );
    },
    counts: true,
  },
  scripted: { start: () => createScriptedEngine(), counts: false },
  instant: { start: () => createInstantEngine(), counts: false },
};

for (const [name, { start, counts }] of Object.entries(KINDS)) {
  test(name, async (t) => {
    const engine = await start(t);
    t.true(engine.ready());
    const models = engine.models();
    const names = models.map(({ id, revision }) => `${id}@${revision}`);
    t.deepEqual(names, names.toSorted());
    for (const { id } of models) t.is(models.filter((each) => each.id === id && each.isDefault).length, 1);

    const ready = models.find(({ status, isDefault }) => status === 'ready' && isDefault);
    if (ready === undefined) return t.fail('no model is ready');
    const { id: model, revision, limits } = ready;
    const scoring = job({ model, revision, choices: ['abc', 'mno', 'xyz'] });
    let released = 0;
    const outcomes = await Promise.all(
      [1, 2].map(() => engine.score(scoring, terms({ released: () => void released++ }))),
    );
    const [first, second] = outcomes;
    if (first?.kind !== 'scored' || second?.kind !== 'scored') return t.fail('not a decision');
    t.is(first.probabilities.length, 3);
    t.true(first.probabilities.every((value) => value > 0 && value < 1) || name === 'scripted');
    if (name !== 'scripted') t.true(Math.abs(first.probabilities.reduce((sum, value) => sum + value, 0) - 1) < 1e-6);
    t.deepEqual(first.probabilities, second.probabilities);
    t.is(first.inputTokens, second.inputTokens);
    t.true(Number.isInteger(first.inputTokens) && first.inputTokens > 0);
    t.is(released, 2);
    t.deepEqual(await engine.prepare(scoring, terms()), { kind: 'prepared' });

    if (counts) {
      const long = await engine.score({ ...scoring, input: 'abc '.repeat(limits.inputTokens + 1) }, terms());
      t.like(long, { kind: 'input_too_long', limit: limits.inputTokens });
      const choice = 'abc '.repeat(limits.candidateTokens + 1);
      const choices = ['abc', choice].toSorted();
      for (const outcome of [
        await engine.score({ ...scoring, choices }, terms()),
        await engine.prepare({ ...scoring, choices }, terms()),
      ]) {
        t.like(outcome, { kind: 'choice_too_long', choice, limit: limits.candidateTokens });
        t.true(outcome.kind === 'choice_too_long' && outcome.tokens > limits.candidateTokens);
      }
    }

    const late = terms({ within: 0, released: () => void released++ });
    await t.throwsAsync(engine.score(scoring, late), { instanceOf: JobDeadlinePassed });
    t.is(released, 3);
    const left = { signal: AbortSignal.abort() };
    await t.throwsAsync(engine.score(scoring, terms(left)), { instanceOf: JobCanceled });
    await t.throwsAsync(engine.prepare(scoring, terms(left)), { instanceOf: JobCanceled });
    await t.throwsAsync(engine.score({ ...scoring, revision: 'r9' }, terms()), { instanceOf: ModelUnavailable });
    await engine.close();
    await t.throwsAsync(engine.score(scoring, terms()), { instanceOf: EngineClosing });
  });
}
