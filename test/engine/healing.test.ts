/** Engines that die, hang or grow. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { EngineFailed, JobAbandoned, JobCanceled, JobDeadlinePassed } from '../../src/engine/errors.ts';
import { SLOW, statusOf } from '../support/slow-package.ts';
import { eventually, job, startEngine, terms } from './support/engine.ts';
import { enginesOf } from './support/engine-processes.ts';
import { modelsFolder, TINY, writePackage } from './support/packages.ts';

/** Takes 400 MiB more for each text that says so. */
const growingWorker = fileURLToPath(new URL('support/growing-worker/main.ts', import.meta.url));

test.serial('a killed engine is replaced, and its work is done by another', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW), engines: 2 });
  await eventually(() => enginesOf().length === 2);
  const requests = Array.from({ length: 8 }, (_, i) =>
    engine.score(job({ model: 'slow', input: `abc ${i}` }), terms()),
  );
  await new Promise((resolve) => setTimeout(resolve, 50));
  const [victim] = enginesOf();
  process.kill(victim ?? 0, 'SIGKILL');
  const kinds = (await Promise.all(requests)).map(({ kind }) => kind);
  t.deepEqual(kinds, new Array(8).fill('scored'));
  t.is(statusOf(engine, 'slow'), 'ready');
  await eventually(() => enginesOf().length === 2 && !enginesOf().includes(victim ?? 0));
  t.true(engine.log.some(({ message, fields }) => message === 'an engine has died' && fields.pid === victim));
});

test.serial('a job that two engines die of fails, and the third serves on', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW) });
  const doomed = engine.score(job({ model: 'slow', choices: Array.from({ length: 30 }, (_, i) => `c${i}`) }), terms());
  const failed = t.throwsAsync(doomed, { instanceOf: EngineFailed });
  for (let deaths = 0; deaths < 2; deaths++) {
    await eventually(() => engine.ready() && enginesOf().length === 1);
    await new Promise((resolve) => setTimeout(resolve, 150));
    for (const pid of enginesOf()) process.kill(pid, 'SIGKILL');
    await eventually(() => !engine.ready());
  }
  await failed;
  t.is(statusOf(engine, 'slow'), 'ready');
  t.is((await engine.score(job({ model: 'slow' }), terms())).kind, 'scored');
});

test.serial('a stuck engine is killed and replaced', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, TINY), stuckAfterMs: 400 });
  const [pid] = enginesOf();
  process.kill(pid ?? 0, 'SIGSTOP');
  await t.throwsAsync(engine.score(job(), terms()), { instanceOf: JobAbandoned });
  t.is((await engine.score(job(), terms())).kind, 'scored');
  t.false(enginesOf().includes(pid ?? 0));
  t.true(engine.log.some(({ fields }) => String(fields.reason).includes('no progress')));
});

test.serial('time in which the service itself stood still is no silence of an engine', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, TINY), stuckAfterMs: 400 });
  const [pid] = enginesOf();
  const waiting = engine.score(job(), terms());
  process.kill(pid ?? 0, 'SIGSTOP');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
  // Looked at once more before the engine can answer.
  setTimeout(() => process.kill(pid ?? 0, 'SIGCONT'), 150);
  t.is((await waiting).kind, 'scored');
  t.deepEqual(enginesOf(), [pid]);
});

test.serial(
  'an engine whose place was taken and that does not end is killed, and the next one gets its turn',
  async (t) => {
    const modelsDir = await modelsFolder(t, TINY);
    const engine = await startEngine(t, { modelsDir, engines: 2, stuckAfterMs: 400 });
    await eventually(() => engine.stats().engines.length === 2);
    const before = enginesOf();
    for (const pid of before) process.kill(pid, 'SIGSTOP');
    await writePackage(modelsDir, { id: 'zz' });
    await eventually(() => statusOf(engine, 'zz') === 'ready');
    const killed = () =>
      engine.log.flatMap(({ level, message, fields }) =>
        level === 'warn' && message === 'an engine did not end when it was told to' ? [fields.pid] : [],
      );
    await eventually(() => killed().length === before.length);
    t.deepEqual(killed().sort(), [...before].sort());
    await eventually(() => engine.stats().engines.length === 2);
    t.is(engine.stats().restarts, 0);
    t.is((await engine.score(job({ model: 'zz' }), terms())).kind, 'scored');
  },
);

test.serial(
  'what ran in an engine that got stuck or crashed is given to no other one; what it had not begun is',
  async (t) => {
    const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW), stuckAfterMs: 400 });
    const endWith = async (signal: NodeJS.Signals): Promise<number> => {
      const before = enginesOf();
      const requests = Array.from({ length: 6 }, (_, i) =>
        engine.score(
          job({
            model: 'slow',
            input: `abc ${i}`,
            choices: Array.from({ length: 10 }, (_, k) => `${signal} ${i} ${k}`),
          }),
          terms(),
        ),
      );
      await new Promise((resolve) => setTimeout(resolve, 50));
      process.kill(before[0] ?? 0, signal);
      const outcomes = await Promise.allSettled(requests);
      const abandoned = outcomes.filter((each) => each.status === 'rejected');
      t.true(abandoned.every(({ reason }) => reason instanceof JobAbandoned));
      t.false(enginesOf().includes(before[0] ?? 0));
      return abandoned.length;
    };
    t.is(await endWith('SIGSTOP'), 1);
    t.is(await endWith('SIGSEGV'), 1);
    t.is(engine.stats().restarts, 2, 'no job ended a second engine');
    t.deepEqual(engine.stats().abandoned, { stuck: 1, crashed: 1 });
  },
);

test.serial('a catalog that an engine ends with is prepared in no other one', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW) });
  const before = enginesOf();
  const choices = Array.from({ length: 30 }, (_, k) => `choice ${k}`);
  // Stopped, so that it cannot be done before it ends.
  process.kill(before[0] ?? 0, 'SIGSTOP');
  const preparing = engine.prepare(job({ model: 'slow', choices }), terms());
  process.kill(before[0] ?? 0, 'SIGSEGV');
  process.kill(before[0] ?? 0, 'SIGCONT');
  await t.throwsAsync(preparing, { instanceOf: JobAbandoned });
  t.is(engine.stats().restarts, 1);
  t.deepEqual(engine.stats().abandoned, { stuck: 0, crashed: 1 });
});

test.serial('it is not ready while decisions wait and none is finished', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, TINY), unreadyAfterMs: 300 });
  const [pid] = enginesOf();
  process.kill(pid ?? 0, 'SIGSTOP');
  const waiting = [1, 2, 3].map(() => engine.score(job(), terms()));
  t.true(engine.ready(), 'at first');
  await eventually(() => !engine.ready());
  process.kill(pid ?? 0, 'SIGCONT');
  await Promise.all(waiting);
  t.true(engine.ready());
  await new Promise((resolve) => setTimeout(resolve, 400));
  t.true(engine.ready(), 'with nothing to do');
});

test.serial('an engine that takes long but makes progress is not stuck', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, SLOW), stuckAfterMs: 1000 });
  const before = enginesOf();
  const began = performance.now();
  for (let i = 0; performance.now() - began < 1500; i++) {
    const choices = Array.from({ length: 30 }, (_, k) => `c${i} ${k}`);
    t.is((await engine.score(job({ model: 'slow', choices }), terms())).kind, 'scored');
  }
  t.deepEqual(enginesOf(), before);
});

test.serial('callers are answered on time while the engine does not move', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, TINY) });
  const [pid] = enginesOf();
  process.kill(pid ?? 0, 'SIGSTOP');
  const began = performance.now();
  const leaving = new AbortController();
  const late = [300, 400, 350].map((within) => engine.score(job(), terms({ within })));
  const left = engine.score(job(), terms({ signal: leaving.signal }));
  setTimeout(() => leaving.abort(), 100);
  await t.throwsAsync(left, { instanceOf: JobCanceled });
  for (const each of late) await t.throwsAsync(each, { instanceOf: JobDeadlinePassed });
  const took = performance.now() - began;
  t.true(took >= 399 && took < 2000, `took ${took} ms`);
  process.kill(pid ?? 0, 'SIGCONT');
  t.is((await engine.score(job(), terms())).kind, 'scored');
  t.deepEqual(enginesOf(), [pid]);
});

test.serial('an engine that grew too large is replaced without a failed request', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const engine = await startEngine(t, {
    modelsDir,
    workerEntry: growingWorker,
    engineMemoryBytes: 400 * 2 ** 20,
    recycleAfterMs: 500,
  });
  const [first] = enginesOf();
  await engine.score(job({ input: 'grow' }), terms());
  let made = 0;
  while (enginesOf().includes(first ?? 0)) {
    await engine.score(job({ input: `abc ${made++}` }), terms());
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  for (let i = 0; i < 100; i++) await engine.score(job(), terms());
  t.true(engine.log.some(({ message }) => message === 'an engine is too large and is replaced'));
  t.false(engine.log.some(({ message }) => message === 'an engine has died'));
  t.like(engine.stats(), { replacements: 1, restarts: 0 });
});

test.serial('an engine that is too large only by what it does not use gives that back and stays', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const engine = await startEngine(t, {
    modelsDir,
    workerEntry: growingWorker,
    engineMemoryBytes: 350 * 2 ** 20,
    recycleAfterMs: 100,
  });
  const [pid] = enginesOf();
  await engine.score(job({ input: 'litter' }), terms());
  t.true(mebibytes(pid, 'VmHWM') > 400);
  await eventually(() => mebibytes(pid, 'VmRSS') < 250);
  t.deepEqual(enginesOf(), [pid]);
  t.is(engine.stats().replacements, 0);
});

test.serial('engines whose models alone are too large are replaced for what they grow by', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const engine = await startEngine(t, {
    modelsDir,
    engines: 2,
    workerEntry: growingWorker,
    engineMemoryBytes: 2 ** 20,
    recycleAfterMs: 100,
  });
  const before = enginesOf();
  // Each tells its size once a second.
  for (let i = 0; i < 350; i++) {
    await engine.score(job({ input: `abc ${i}` }), terms());
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  t.deepEqual(enginesOf(), before);
  t.is(engine.stats().replacements, 0);
  const warnings = engine.log.filter(({ level }) => level === 'warn').map(({ message }) => message);
  t.is(warnings.length, 1, warnings.join('\n'));
  t.regex(
    warnings[0] ?? '',
    /^the models alone take \d+ MiB, more than the 1 MiB of UMPIRE_ENGINE_MEMORY: raise it, .* UMPIRE_MODELS$/,
  );
  await engine.score(job({ input: 'grow' }), terms());
  await eventually(() => engine.stats().replacements === 1);
  await eventually(() => enginesOf().length === 2 && enginesOf().filter((pid) => before.includes(pid)).length === 1);
});

test.serial('engines end with their parent, however it ends', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const host = fork(fileURLToPath(new URL('support/host.ts', import.meta.url)), [modelsDir], { execArgv: [] });
  await once(host, 'message');
  const pids = enginesOf(host.pid);
  t.is(pids.length, 1);
  // A terminal's Ctrl-C reaches the whole group: the engines leave it to their parent.
  for (const pid of pids) process.kill(pid, 'SIGINT');
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.deepEqual(enginesOf(host.pid), pids);
  host.kill('SIGKILL');
  await eventually(() => pids.every((pid) => !isAlive(pid)));
});

/** The most resident memory that a process has had (`VmHWM`), or what it has now (`VmRSS`). */
function mebibytes(pid: number | undefined, field: 'VmHWM' | 'VmRSS'): number {
  return Number(new RegExp(`${field}:\\s*(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
