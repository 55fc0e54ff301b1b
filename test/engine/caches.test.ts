/** What is cached for one owner makes nobody else's decision faster: how many choices had to be encoded tells. */
import test from 'ava';
import type { Engine, JobTerms } from '../../src/engine/engine.ts';
import { job, shippedModels, startEngine, terms } from './support/engine.ts';
import { modelsFolder, TINY } from './support/packages.ts';

const owner = (tenant: string): JobTerms => terms({ tenant, keyed: true });

/** How many of a decision's choices were there already. */
async function cached(engine: Engine, decision: ReturnType<typeof job>, whose: JobTerms): Promise<number> {
  const before = engine.stats().choices.cached;
  await engine.score(decision, whose);
  return engine.stats().choices.cached - before;
}

test('200 guesses at the choices of a private catalog find none, however often they are repeated', async (t) => {
  const engine = await startEngine(t, { modelsDir: await modelsFolder(t, TINY) });
  const secrets = Array.from({ length: 200 }, (_, i) => `ab${i}`);
  await engine.prepare(job({ choices: secrets }), owner('victim'));
  t.is(await cached(engine, job({ choices: secrets }), owner('victim')), 200, 'they are cached for their owner');
  for (const round of ['first', 'second']) {
    for (const [i, secret] of secrets.entries()) {
      const guess = job({ choices: [secret, `${round} ${i}`] });
      const own = round === 'first' ? 0 : 1;
      t.is(await cached(engine, guess, terms({ tenant: '192.0.2.1' })), own, `${secret}, without a key`);
      t.is(await cached(engine, guess, owner('other')), own, `${secret}, with another key`);
    }
  }
});

test('a question of an owner is new to everybody else', async (t) => {
  const engine = await startEngine(t, { modelsDir: shippedModels, models: ['umpire-mini'] });
  const question = job({
    model: 'umpire-mini',
    revision: 'r10',
    choices: ['billing', 'shipping'],
    instruction: 'Which team?',
  });
  const timeOf = async (whose: JobTerms): Promise<number> => {
    const outcome = await engine.score({ ...question, input: 'It broke.' }, whose);
    return outcome.kind === 'scored' ? outcome.timings.infer : Number.NaN;
  };
  t.is(await cached(engine, question, owner('victim')), 0);
  t.is(await cached(engine, question, terms()), 0);
  // In turns, and the least of eight: a machine that is busy makes one of them long, or all of a while.
  const times: (readonly [known: number, unknown: number])[] = [];
  for (let turn = 0; turn < 8; turn++) {
    times.push([await timeOf(owner('victim')), await timeOf(owner(`other ${turn}`))]);
  }
  const known = Math.min(...times.map(([time]) => time));
  const unknown = Math.min(...times.map(([, time]) => time));
  t.true(unknown > known, `${unknown} ms, known to its owner ${known} ms`);
});
