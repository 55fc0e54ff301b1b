/** Answers depend on the request alone, whatever else is computed, wherever and in whatever order. */
import test from 'ava';
import type { ScoreJob } from '../../src/engine/engine.ts';
import { job, probabilitiesOf, startEngine, terms } from './support/engine.ts';
import { encoderGraph, modelsFolder, writePackage } from './support/packages.ts';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

/** Numbers that repeat from run to run. */
function randoms(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test('answers among a thousand mixed requests are those of each request alone, bit for bit', async (t) => {
  const modelsDir = await modelsFolder(t);
  const roomy = { manifest: { limits: { input_tokens: 200, candidate_tokens: 12, choices: 300 } } };
  await writePackage(modelsDir, roomy);
  await writePackage(modelsDir, { ...roomy, revision: 'r2', graph: encoderGraph(2) });
  const random = randoms(7);
  const word = () => Array.from({ length: 1 + random(5) }, () => LETTERS[random(26)]).join('');
  const requests = Array.from({ length: 150 }, (_, i) => {
    const choices = [...new Set(Array.from({ length: 2 + random(i % 10 === 0 ? 60 : 8) }, word))];
    const input = Array.from({ length: 1 + random(30) }, word).join(' ');
    return job({ revision: `r${1 + random(2)}`, input, instruction: word(), choices: [...choices, 'first', 'second'] });
  });
  const numbers = (request: ScoreJob, outcome: Parameters<typeof probabilitiesOf>[1]) =>
    JSON.stringify(probabilitiesOf(request, outcome));

  const alone = await startEngine(t, { modelsDir });
  const expected: string[] = [];
  for (const request of requests) expected.push(numbers(request, await alone.score(request, terms())));

  const crowd = await startEngine(t, { modelsDir, engines: 2, choiceCacheBytes: 100_000 });
  const sent = Array.from({ length: 1000 }, () => random(requests.length));
  const wrong = await Promise.all(
    sent.map(async (which, i) => {
      const request = requests[which] as ScoreJob;
      const outcome = await crowd.score(request, terms({ tenant: `tenant ${i % 7}`, keyed: i % 3 === 0 }));
      return numbers(request, outcome) === expected[which] ? [] : [which];
    }),
  );
  t.deepEqual(wrong.flat(), []);
});
