/**
 * While an engine reads a long text, short decisions pass it; answers and what is learnt of costs stay what they were.
 */
import test from 'ava';
import type { ScoreJob } from '../../src/engine/engine.ts';
import { WorkInFlight } from '../../src/engine/processes/work-in-flight.ts';
import { job, probabilitiesOf, startEngine, terms } from './support/engine.ts';
import { modelsFolder, writePackage } from './support/packages.ts';

/** Marks, which are dropped: a text of no tokens that takes long to read. */
const MARKS = '\u0315\u0300'.repeat(500_000);

for (const where of ['input', 'instruction', 'choices'] as const) {
  test(`short decisions pass one whose ${where} is long, in the only engine, and a second long one does not`, async (t) => {
    const modelsDir = await modelsFolder(t);
    await writePackage(modelsDir);
    const engine = await startEngine(t, { modelsDir });
    const short = job();
    // Not the same one twice: choices that are known need no reading.
    const [first, second] = ['abc', 'abd'].map((text) => {
      const long = `${text} ${MARKS}`;
      return job(where === 'choices' ? { choices: [long, 'xyz'] } : { [where]: long });
    }) as [ScoreJob, ScoreJob];
    const alone = probabilitiesOf(short, await engine.score(short, terms()));
    const order: string[] = [];
    const decided = async (name: string, request: ScoreJob, tenant: string) => {
      const outcome = await engine.score(request, terms({ tenant }));
      order.push(name);
      return probabilitiesOf(request, outcome);
    };
    const long = [decided('long', first, 'a'), decided('long again', second, 'a')];
    for (let count = 0; count < 3; count++) t.deepEqual(await decided('short', short, 'b'), alone);
    const passed = await Promise.all(long);
    t.deepEqual(order, ['short', 'short', 'short', 'long', 'long again']);
    for (const [index, request] of [first, second].entries())
      t.deepEqual(passed[index], probabilitiesOf(request, await engine.score(request, terms())));
  });
}

test('what passes takes time of its own, and none of what it passes', (t) => {
  const work = new WorkInFlight(1);
  work.add(1, 100, 1_000);
  work.add(2, 10, 1_020);
  t.is(work.remaining(1_020), 90);
  t.is(work.finish(2, 1_032), 12);
  t.is(work.remaining(1_032), 80);
  work.add(3, 10, 1_040);
  t.is(work.finish(3, 1_045), 5);
  t.is(work.finish(1, 1_110), 93);
  work.add(4, 10, 1_120);
  work.add(5, 10, 1_121);
  t.is(work.finish(4, 1_130), 10);
  t.is(work.finish(5, 1_138), 8);
});
