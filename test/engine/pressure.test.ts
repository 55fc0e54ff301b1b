/** Deadlines, departures, overload and shares, with engines that are busy. */
import test from 'ava';
import type { JobTerms, ScoreOutcome } from '../../src/engine/engine.ts';
import {
  DeadlineTooShort,
  EngineClosing,
  EngineOverloaded,
  JobCanceled,
  JobDeadlinePassed,
  ModelUnavailable,
} from '../../src/engine/errors.ts';
import { SLOW } from '../support/slow-package.ts';
import { eventually, job, startEngine, terms } from './support/engine.ts';
import { modelsFolder, TINY } from './support/packages.ts';

const slowJob = (choices: readonly string[] = ['abc', 'xyz']) => job({ model: 'slow', choices });
const many = (count: number, from = 0): readonly string[] => Array.from({ length: count }, (_, i) => `c${from + i}`);

test('a queued job whose caller leaves or whose time is up is answered at once and never computed', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW) });
  let blocked = true;
  const blockers = [many(20), many(20, 100)].map((choices) => engine.score(slowJob(choices), terms()));
  const last = blockers.at(-1)?.then(() => {
    blocked = false;
  });
  const leaving = new AbortController();
  const released: string[] = [];
  const left = engine.score(slowJob(), terms({ signal: leaving.signal, released: () => released.push('left') }));
  const late = engine.score(
    job({ model: 'slow', input: 'late' }),
    terms({ within: 30_000, released: () => released.push('late') }),
  );
  setTimeout(() => leaving.abort(), 20);
  await t.throwsAsync(left, { instanceOf: JobCanceled });
  t.true(blocked);
  t.deepEqual(released, ['left']);
  await late;
  await last;
  t.deepEqual(released, ['left', 'late']);
});

test('a running job is answered at once, and its slot is free when the run ends', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW) });
  const leaving = new AbortController();
  let released = false;
  const running = engine.score(slowJob(many(30)), terms({ signal: leaving.signal, released: () => (released = true) }));
  await new Promise((resolve) => setTimeout(resolve, 100));
  leaving.abort();
  await t.throwsAsync(running, { instanceOf: JobCanceled });
  t.false(released);
  // The rest of the choices is not computed: the next one comes long before thirty runs are over.
  const began = performance.now();
  await engine.score(slowJob(many(2)), terms());
  t.true(released);
  t.log(`the next decision took ${Math.round(performance.now() - began)} ms`);
});

test('a job that is over before it begins is not taken in', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW) });
  await t.throwsAsync(engine.score(slowJob(), terms({ within: 0 })), { instanceOf: JobDeadlinePassed });
  await t.throwsAsync(engine.score(slowJob(), terms({ signal: AbortSignal.abort() })), { instanceOf: JobCanceled });
  // So many runs of milliseconds each do not fit into as many; the time is not over before they are counted.
  const tooMuch = () => engine.score(slowJob(many(300)), terms({ within: 100 }));
  await t.throwsAsync(tooMuch(), { instanceOf: DeadlineTooShort });
  // Nor does that look like a flood to others.
  for (let job = 0; job < 20; job++) await t.throwsAsync(tooMuch());
  t.is(engine.crowded({ tenant: 'a', keyed: false, deadline: performance.now() + 20 }), undefined);
});

test('in a flood a caller is told that nothing of his would be taken in, others are not', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW) });
  await engine.score(slowJob(), terms());
  const caller = (tenant: string, keyed = false) => ({ tenant, keyed, deadline: performance.now() + 2000 });
  t.is(engine.crowded(caller('a')), undefined);
  // More than two seconds hold, on a fast machine, too.
  const flood: Promise<unknown>[] = [];
  let told: number | undefined;
  while (told === undefined && flood.length < 5000) {
    for (let job = 0; job < 50; job++)
      flood.push(engine.score(slowJob(), terms({ within: 2000 })).catch((error: unknown) => error));
    told = engine.crowded(caller('a'));
  }
  const outcomes = Promise.all(flood);
  t.true(Number.isInteger(told) && (told as number) >= 1, `${told}`);
  t.is(engine.crowded(caller('b')), undefined, 'another address has its share of the queue');
  t.is(engine.crowded(caller('a', true)), undefined, 'as has an owner');
  t.is(engine.crowded({ ...caller('a'), deadline: performance.now() + 30_000 }), undefined, 'who has time may wait');
  t.is(engine.crowded({ ...caller('a'), deadline: performance.now() - 1 }), undefined, 'over is not crowded');
  t.true((await outcomes).some((outcome) => outcome instanceof EngineOverloaded));
  // The flood is over, and said to be; a busy machine takes more than a second for it.
  await eventually(() => engine.crowded(caller('a')) === undefined, 10_000);
});

test('overload: what cannot be done in time is refused at once, what is taken in is done in time', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW) });
  await engine.score(slowJob(), terms());
  const began = performance.now();
  const within = 2000;
  // More than a fast machine does in the time.
  const outcomes = await Promise.all(
    Array.from({ length: 800 }, async () => {
      try {
        await engine.score(slowJob(), terms({ within }));
        return { kind: 'done', at: performance.now() - began } as const;
      } catch (error) {
        return { kind: 'refused', error, at: performance.now() - began } as const;
      }
    }),
  );
  const done = outcomes.filter(({ kind }) => kind === 'done');
  const refused = outcomes.flatMap((outcome) => (outcome.kind === 'refused' ? [outcome.error] : []));
  const overloaded = refused.filter((error) => error instanceof EngineOverloaded);
  t.true(done.length >= 3, `${done.length} done`);
  t.true(overloaded.length >= 50, `${overloaded.length} refused`);
  t.true(overloaded.every(({ retryAfter }) => Number.isInteger(retryAfter) && retryAfter >= 1 && retryAfter <= 60));
  t.true(done.every(({ at }) => at <= within + 100));
});

test('the queue is bounded in jobs and bytes, and keyed callers keep a fifth of it', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW), queueJobs: 10, queueBytes: 1_000_000 });
  const answers: Promise<ScoreOutcome>[] = [];
  const refusals = async (count: number, overrides: Partial<JobTerms>, input = 'abc'): Promise<number> => {
    const before = answers.length;
    const results = Array.from({ length: count }, () =>
      engine.score(job({ model: 'slow', input }), terms({ within: 60_000, ...overrides })),
    );
    const refused = await Promise.all(
      results.map((result) =>
        Promise.race([
          result.then(
            () => 0,
            (error) => (error instanceof EngineOverloaded ? 1 : 0),
          ),
          soon(),
        ]),
      ),
    );
    answers.push(...results);
    for (const result of results) result.catch(() => {});
    t.true(answers.length >= before);
    return refused.reduce((sum, each) => sum + each, 0);
  };
  // One that runs for long; of the ten places behind it, eight are for anybody.
  answers.push(engine.score(slowJob(many(30)), terms({ within: 60_000 })));
  t.is(await refusals(20, {}), 12);
  t.is(await refusals(5, { keyed: true, tenant: 'owner' }), 3);
  await Promise.allSettled(answers);
  const large = await refusals(3, {}, 'a'.repeat(300_000));
  t.true(large >= 1, `${large} large ones refused`);
  await Promise.allSettled(answers);
});

test('short jobs of others do not wait for the queue of one', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW) });
  await engine.score(slowJob(), terms());
  let left = 20;
  const crowd = Array.from({ length: left }, () => engine.score(slowJob(), terms()).then(() => left--));
  await engine.score(slowJob(), terms({ tenant: 'b' }));
  t.true(left >= 10, `${left} of the crowd were still waiting`);
  await Promise.all(crowd);
});

test('a catalog is prepared in pieces, so that decisions pass', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW) });
  await engine.score(slowJob(), terms());
  let prepared = false;
  const preparing = engine.prepare(slowJob(many(30)), terms()).then((outcome) => {
    prepared = true;
    return outcome;
  });
  await engine.score(slowJob(), terms());
  t.false(prepared);
  t.deepEqual(await preparing, { kind: 'prepared' });
  const leaving = new AbortController();
  const left = engine.prepare(slowJob(many(30, 200)), terms({ signal: leaving.signal }));
  setTimeout(() => leaving.abort(), 50);
  await t.throwsAsync(left, { instanceOf: JobCanceled });
  await t.throwsAsync(engine.prepare(slowJob(many(30, 300)), terms({ within: 1 })), { instanceOf: DeadlineTooShort });
});

test('a closing engine finishes what it took in and refuses the rest', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW) });
  const accepted = Array.from({ length: 5 }, () => engine.score(slowJob(), terms()));
  const preparing = engine.prepare(slowJob(many(5)), terms());
  const closed = engine.close();
  await t.throwsAsync(engine.score(slowJob(), terms()), { instanceOf: EngineClosing });
  const kinds = (await Promise.all(accepted)).map(({ kind }) => kind);
  t.deepEqual(kinds, new Array(5).fill('scored'));
  t.deepEqual(await preparing, { kind: 'prepared' });
  await closed;
  t.false(engine.ready());
});

test('a model that is not there is unavailable', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, TINY) });
  await t.throwsAsync(engine.score(job({ revision: 'r9' }), terms()), { instanceOf: ModelUnavailable });
});

function soon(): Promise<number> {
  return new Promise((resolve) => setTimeout(() => resolve(0), 20));
}
