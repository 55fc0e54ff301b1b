/** Cascades: who answers, what is joined, what a step that is away changes, and what a package must say. */
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { ScoreJob, ScoreOutcome } from '../../src/engine/engine.ts';
import { DeadlineTooShort, JobCanceled, ModelUnavailable } from '../../src/engine/errors.ts';
import { readPackage } from '../../src/engine/packages/scan.ts';
import { weightedProduct } from '../../src/engine/tempered.ts';
import { statusOf } from '../support/slow-package.ts';
import { writeCascade } from './support/cascades.ts';
import { eventually, job, startEngine, type TestEngine, terms } from './support/engine.ts';
import { enginesOf } from './support/engine-processes.ts';
import { startHttpModelServer } from './support/http-models/server.ts';
import { keepDeciding } from './support/keep-deciding.ts';
import { encoderGraph, modelsFolder, slowEncoderGraph, TINY, writePackage } from './support/packages.ts';
import { problemsIn, servedEncoder, TEXT_EMBEDDING_OPTIONS, writeRemotePackage } from './support/remote-packages.ts';

type Scored = Extract<ScoreOutcome, { kind: 'scored' }>;

const OTHER = {
  id: 'other',
  graph: encoderGraph(3),
  manifest: { limits: { input_tokens: 30, candidate_tokens: 14, choices: 50 }, languages: ['en', 'fr'] },
};
/** Texts of which the small encoder is sure and unsure. */
const TEXTS = Array.from({ length: 24 }, (_, i) => `${'abcdefgh'[i % 8]}${'xyz'[i % 3]} a${i}`);

async function scored(engine: TestEngine, model: string, more: Partial<ScoreJob> = {}): Promise<Scored> {
  const outcome = await engine.score(job({ model, ...more }), terms());
  if (outcome.kind !== 'scored') throw new Error(outcome.kind);
  return outcome;
}

/** The median confidence of a model in the texts: half of them are surer. */
async function medianOf(engine: TestEngine, model: string): Promise<number> {
  const all = await Promise.all(TEXTS.map((input) => scored(engine, model, { input })));
  return all.map(({ probabilities }) => Math.max(...probabilities)).sort()[TEXTS.length / 2] as number;
}

test('the first step that is sure answers, bit for bit as it does alone; joined, the product of what they say', async (t) => {
  const modelsDir = await modelsFolder(t, { manifest: { languages: ['de', 'en'] } }, OTHER);
  const engine = await startEngine(t, { modelsDir, engines: 2 });
  const sure = await medianOf(engine, 'tiny');
  const steps = [{ model: 'tiny', sure }, { model: 'other@r1' }];
  const weights = [0.4, 0.9];
  await writeCascade(modelsDir, { steps });
  await writeCascade(modelsDir, { steps: [steps[0], { ...steps[1], weights }], join: true }, 'joined');
  await eventually(() => statusOf(engine, 'joined') === 'ready' && statusOf(engine, 'cascade') === 'ready');
  const asked = new Set<string | undefined>();
  for (const input of TEXTS) {
    const [tiny, other] = [
      await scored(engine, 'tiny', { input, vector: true }),
      await scored(engine, 'other', { input }),
    ];
    const isSure = Math.max(...tiny.probabilities) >= sure;
    const found = await scored(engine, 'cascade', { input, vector: true });
    t.deepEqual(found.probabilities, isSure ? tiny.probabilities : other.probabilities);
    t.deepEqual(found.step, { model: isSure ? 'tiny@r1' : 'other@r1', away: [] });
    t.is(found.inputTokens, tiny.inputTokens + (isSure ? 0 : other.inputTokens));
    t.deepEqual(found.vector, tiny.vector);
    const joined = await scored(engine, 'joined', { input });
    const product = weightedProduct([tiny.probabilities, other.probabilities], weights);
    t.deepEqual(joined.probabilities, isSure ? tiny.probabilities : product);
    asked.add(found.step?.model);
  }
  t.is(asked.size, 2);
  const listed = engine.models().find(({ id }) => id === 'cascade');
  t.deepEqual(listed?.limits, { inputTokens: 30, candidateTokens: 12, choices: 50 });
  t.deepEqual(listed?.languages, ['en']);
  // Over the narrowest limit, although the first step could read it; a choice over that of a step.
  t.like(await engine.score(job({ model: 'cascade', input: 'a '.repeat(33) }), terms()), {
    kind: 'input_too_long',
    limit: 30,
  });
  const choices = ['abc', 'a b c d e f g h i j k l m'];
  t.like(await engine.prepare(job({ model: 'cascade', choices }), terms()), { kind: 'choice_too_long', limit: 12 });
  t.deepEqual(await engine.prepare(job({ model: 'cascade' }), terms()), { kind: 'prepared' });
  // Reading alone asks every step.
  t.is((await scored(engine, 'cascade', { choices: [] })).step?.model, 'other@r1');
});

test('deadline, cancellation and release hold over all steps', async (t) => {
  const slow = { id: 'slow', graph: slowEncoderGraph(40), options: { joint_weight: 0 } };
  const modelsDir = await modelsFolder(t, TINY, {
    ...slow,
    manifest: { limits: { input_tokens: 40, candidate_tokens: 12, choices: 30 } },
  });
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 });
  const steps = [
    { model: 'tiny', sure: 1 },
    { model: 'slow', reached: 1 },
  ];
  await writeCascade(modelsDir, { steps });
  await writeCascade(modelsDir, { steps, if_away: 'answer' }, 'lenient');
  await eventually(() => statusOf(engine, 'lenient') === 'ready' && statusOf(engine, 'cascade') === 'ready');
  let released = 0;
  const counted = (more: Parameters<typeof terms>[0]) => terms({ ...more, released: () => released++ });
  const choices = Array.from({ length: 30 }, (_, i) => `c${i}`);
  await t.throwsAsync(engine.score(job({ model: 'cascade', choices }), counted({ within: 300 })), {
    instanceOf: DeadlineTooShort,
  });
  t.is(released, 1);
  const found = await engine.score(job({ model: 'lenient', choices }), counted({ within: 300 }));
  t.like(found, { kind: 'scored', step: { model: 'tiny@r1', away: ['slow@r1'] } });
  await eventually(() => released === 2);
  const leaving = new AbortController();
  const left = engine.score(job({ model: 'cascade', choices: ['c8', 'c9'] }), counted({ signal: leaving.signal }));
  setTimeout(() => leaving.abort(), 30);
  await t.throwsAsync(left, { instanceOf: JobCanceled });
  await eventually(() => released === 3);
});

test('a step that is reached more often than its package says is soon counted as often', async (t) => {
  const slow = { id: 'slow', graph: slowEncoderGraph(8), options: { joint_weight: 0 } };
  const modelsDir = await modelsFolder(t, TINY, slow);
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 });
  const [first, last] = [{ model: 'tiny', sure: 1 }, { model: 'slow' }];
  for (const reached of [0.001, 1])
    await writeCascade(modelsDir, { steps: [first, { ...last, reached }] }, `at-${reached}`);
  await eventually(() => statusOf(engine, 'at-0.001') === 'ready' && statusOf(engine, 'at-1') === 'ready');
  // So many choices that even the fastest machine has no time for both steps.
  const choices = Array.from({ length: 50 }, (_, i) => `c${i}`);
  const within = (model: string) =>
    engine.score(job({ model, choices }), terms({ within: 60 })).catch((error) => error);
  t.true((await within('at-1')) instanceof DeadlineTooShort);
  t.false((await within('at-0.001')) instanceof DeadlineTooShort);
  for (const input of [...TEXTS, ...TEXTS, ...TEXTS]) await scored(engine, 'at-0.001', { input });
  t.true((await within('at-0.001')) instanceof DeadlineTooShort);
});

test('the later steps of a decision wait behind none that came after it', async (t) => {
  const slow = (id: string, seed: number) => ({ id, graph: slowEncoderGraph(2, seed), options: { joint_weight: 0 } });
  const modelsDir = await modelsFolder(t, slow('one', 1), slow('two', 2));
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 });
  const sure = await medianOf(engine, 'one');
  await writeCascade(modelsDir, { steps: [{ model: 'one', sure }, { model: 'two' }] });
  await eventually(() => statusOf(engine, 'cascade') === 'ready');
  const alone = await Promise.all(TEXTS.map(async (input) => ({ input, ...(await scored(engine, 'one', { input })) })));
  const isSure = ({ probabilities }: Scored): boolean => Math.max(...probabilities) >= sure;
  const order: (string | undefined)[] = [];
  // Those that need both steps come first, and then those that need one.
  const requests = [...alone.filter((each) => !isSure(each)), ...alone.filter(isSure)];
  await Promise.all(
    requests.map(async ({ input }) => {
      order.push((await scored(engine, 'cascade', { input })).step?.model);
    }),
  );
  t.deepEqual([order[0], order.at(-1)], ['two@r1', 'one@r1']);
});

/** An engine with `tiny`, a model at a server, and a cascade of both for each answer to `if_away`. */
async function sceneWithServer(t: ExecutionContext, sure: number) {
  const server = await startHttpModelServer(t, await servedEncoder());
  const modelsDir = await modelsFolder(t, TINY);
  await writeRemotePackage(modelsDir, server.address, { options: TEXT_EMBEDDING_OPTIONS });
  const steps = [{ model: 'tiny', sure }, { model: 'remote@r1' }];
  for (const if_away of ['answer', 'refuse']) await writeCascade(modelsDir, { steps, if_away }, if_away);
  return { server, modelsDir, engine: await startEngine(t, { modelsDir, engines: 1, largestRequestMs: 600_000 }) };
}

test('a step that is away: the others answer and say so, or 503 where it is needed; it comes back by itself', async (t) => {
  const { server, engine, modelsDir } = await sceneWithServer(t, 1);
  t.deepEqual((await scored(engine, 'answer')).step, { model: 'remote@r1', away: [] });
  await server.kill();
  await eventually(() => statusOf(engine, 'remote') === 'unavailable');
  t.deepEqual((await scored(engine, 'answer')).step, { model: 'tiny@r1', away: ['remote@r1'] });
  await t.throwsAsync(engine.score(job({ model: 'refuse' }), terms()), { instanceOf: ModelUnavailable });
  // What the first step decides alone, it decides.
  await writeCascade(modelsDir, { steps: [{ model: 'tiny', sure: 0 }, { model: 'remote' }] }, 'sure');
  await writeCascade(modelsDir, { steps: [{ model: 'remote', sure: 0.9 }, { model: 'tiny' }] }, 'turned');
  await writeCascade(
    modelsDir,
    { steps: [{ model: 'remote', sure: 0.9 }, { model: 'tiny' }], if_away: 'answer' },
    'kind',
  );
  await eventually(() => statusOf(engine, 'sure') === 'ready' && statusOf(engine, 'kind') === 'ready');
  t.is(statusOf(engine, 'turned'), 'unavailable');
  t.deepEqual((await scored(engine, 'sure')).step, { model: 'tiny@r1', away: [] });
  t.deepEqual((await scored(engine, 'kind')).step, { model: 'tiny@r1', away: ['remote@r1'] });
  await server.revive();
  await eventually(() => statusOf(engine, 'turned') === 'ready');
  t.deepEqual((await scored(engine, 'refuse')).step, { model: 'remote@r1', away: [] });
});

test('half of the decisions that come to a step go on, where the package does not say', async (t) => {
  const modelsDir = await modelsFolder(t);
  const steps = ['a', 'b', 'c', 'd'].map((model, i) => ({
    model,
    ...(i < 3 && { sure: 0.5 }),
    ...(i === 1 && { reached: 0.2 }),
  }));
  const { cascade, problems } = await readPackage(await writeCascade(modelsDir, { steps }), 'cascade', 'r1');
  t.deepEqual([cascade?.steps.map(({ reached }) => reached), problems], [[1, 0.2, 0.1, 0.05], []]);
});

test('faults of a package are found at once, each with its place', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  await writeCascade(modelsDir, { steps: [{ model: 'tiny' }], if_away: 'maybe', more: 1 }, 'one');
  const wrong = [
    { model: 'a b', sure: 1.5, weights: [1] },
    { model: 'tiny', reached: -1 },
    { model: 'tiny', sure: 0.5 },
  ];
  await writeCascade(modelsDir, { steps: wrong, join: true }, 'odd');
  await writeCascade(modelsDir, { steps: [{ model: 'late', sure: 0.5 }, { model: 'round' }] }, 'cascade');
  await writeCascade(modelsDir, { steps: [{ model: 'tiny', sure: 0.5 }, { model: 'cascade' }] }, 'round');
  await writeCascade(modelsDir, { steps: [{ model: 'tiny', sure: 0.5 }, { model: 'tiny@r1' }] }, 'twice');
  await writeCascade(modelsDir, { steps: [{ model: 'tiny', sure: 0.5 }, { model: 'late' }] }, 'early');
  const engine = await startEngine(t, { modelsDir }, 'started');
  await eventually(() => statusOf(engine, 'tiny') === 'ready');
  const problemsOf = (id: string) =>
    engine.log.filter(({ fields }) => fields.model === `${id}@r1` && fields.problems !== undefined).at(-1)?.fields
      .problems;
  await eventually(() => problemsOf('early') !== undefined);
  t.deepEqual(problemsOf('one'), [
    'model.json: options.steps must be a list of at least 2 objects',
    'model.json: options.if_away must be one of refuse, answer',
    'model.json: options.more is unknown; known are if_away, join, steps',
  ]);
  t.deepEqual(problemsOf('odd'), [
    'model.json: options.steps[0].model must be <id> or <id>@<revision>',
    'model.json: options.steps[0].sure must be a number from 0 to 1',
    'model.json: options.steps[0].weights is unknown; known are model, sure',
    'model.json: options.steps[1].sure must be a number from 0 to 1',
    'model.json: options.steps[1].reached must be a number from 0 to 1',
    'model.json: options.steps[1].weights must be a list of 2 numbers',
    'model.json: options.steps[2].weights must be a list of 3 numbers',
    'model.json: options.steps[2].sure is unknown; known are model, reached, weights',
  ]);
  const absent = "'late' is not served: there is no such package, or UMPIRE_MODELS leaves it out";
  const isCascade = 'is a cascade, and a step is a model of its own';
  t.deepEqual(problemsOf('cascade'), [
    `options.steps[0].model: ${absent}`,
    `options.steps[1].model: 'round' ${isCascade}`,
  ]);
  t.deepEqual(problemsOf('round'), [`options.steps[1].model: 'cascade' ${isCascade}`]);
  t.deepEqual(problemsOf('twice'), ["options.steps[1].model: 'tiny@r1' is a step before this one, too"]);
  t.deepEqual(problemsOf('early'), [`options.steps[1].model: ${absent}`]);
  await t.throwsAsync(engine.score(job({ model: 'early' }), terms()), { instanceOf: ModelUnavailable });

  // A step that comes, and one that goes.
  await writePackage(modelsDir, { id: 'late' });
  await eventually(() => statusOf(engine, 'early') === 'ready');
  // A change takes over once its steps are there, and one that is broken leaves what works.
  await writeCascade(modelsDir, { steps: [{ model: 'tiny', sure: 0 }, { model: 'late' }] }, 'early');
  await eventually(() => engine.log.some(({ message }) => message === 'a model package has changed'));
  t.is((await scored(engine, 'early')).step?.model, 'tiny@r1');
  await writeCascade(modelsDir, { steps: [] }, 'early');
  await eventually(() => String(problemsOf('early')).includes('options.steps must be a list of at least 2'));
  t.is(statusOf(engine, 'early'), 'ready');
  await rename(join(modelsDir, 'late'), join(await modelsFolder(t), 'late'));
  await eventually(() => statusOf(engine, 'early') === 'unavailable');
  t.regex(problemsIn(engine, 'a model cannot be served'), /early@r1/);
  t.is((await scored(engine, 'tiny')).kind, 'scored');
});

test.serial('a step that is killed again and again under load: no wrong answer, and if_away holds', async (t) => {
  const { server, engine } = await sceneWithServer(t, 1);
  const [first, second] = [await scored(engine, 'tiny'), await scored(engine, 'remote')];
  const right = new Set(
    [first, second].map(({ probabilities }) => JSON.stringify({ abc: probabilities[0], xyz: probabilities[1] })),
  );
  const lenient = keepDeciding(t, engine, () => job({ model: 'answer' }));
  const strict = keepDeciding(t, engine, () => job({ model: 'refuse' }));
  for (let i = 0; i < 4; i++) {
    await sleep(300);
    if (i % 2 === 0) await server.kill();
    else await server.revive();
    for (const pid of i === 3 ? enginesOf().slice(0, 1) : []) process.kill(pid, 'SIGKILL');
  }
  await eventually(() => statusOf(engine, 'remote') === 'ready' && statusOf(engine, 'tiny') === 'ready');
  const [kind, hard] = [await lenient.stop(), await strict.stop()];
  t.true(lenient.made() > 20 && strict.made() > 5, `${lenient.made()} ${strict.made()}`);
  // Killed with a decision in hand: what has no answer yet is given up.
  t.deepEqual(
    Object.keys(kind).filter((fault) => !/^(JobAbandoned|EngineFailed)/.test(fault)),
    [],
  );
  t.deepEqual(
    Object.keys(hard).filter((fault) => !/^(ModelUnavailable|JobAbandoned|EngineFailed)/.test(fault)),
    [],
  );
  t.true(Object.keys(hard).some((fault) => fault.startsWith('ModelUnavailable')));
  for (const answer of [...lenient.answers, ...strict.answers]) t.true(right.has(answer), answer);
  for (const answer of strict.answers)
    t.is(answer, JSON.stringify({ abc: second.probabilities[0], xyz: second.probabilities[1] }));
});
