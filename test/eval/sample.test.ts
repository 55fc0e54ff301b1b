/** The default model's quality on the sample, through a running service: it must not fall. */
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { readDataSets } from '../../bench/eval/data-sets.ts';
import { evaluate } from '../../bench/eval/run.ts';
import { modelsDir } from '../support/models-dir.ts';
import { startService } from '../support/service.ts';

/** Rows of each set: enough to notice, few enough to wait for. */
const rows = 32;

// Two answers a set under what umpire-mini@r5 reaches on these rows: .563, .656, .813, .625, .813. A CPU with other int8 kernels answers a few
// rows in a hundred differently.
const floors: Readonly<Record<string, number>> = {
  banking77: 0.49,
  clinc150: 0.59,
  clinc150_oos: 0.74,
  metatool: 0.56,
  negations: 0.74,
};

test('umpire-mini decides the sample as well as it did', async (t) => {
  t.timeout(200_000);
  const service = await startService({ UMPIRE_MODELS_DIR: modelsDir('umpire-mini') });
  t.teardown(() => service.stop());
  const sets = readDataSets(fileURLToPath(new URL('../../bench/eval/sample', import.meta.url)), { rows });
  const [result] = await evaluate({ url: service.url, concurrency: 4 }, ['umpire-mini'], sets);
  t.deepEqual([...(result?.sets.keys() ?? [])], Object.keys(floors));
  for (const [name, quality] of result?.sets ?? []) {
    t.log(`${name}: accuracy ${quality.accuracy.toFixed(3)}, ECE ${quality.ece.toFixed(3)}`);
    t.true(quality.accuracy >= (floors[name] ?? 1), `${name}: ${quality.accuracy}`);
    t.is(quality.refused, 0);
  }
  const { accuracy = 0, wrongAndSure = 1 } = result?.mean ?? {};
  t.log(`mean accuracy ${accuracy.toFixed(3)}, wrong and sure ${wrongAndSure.toFixed(3)}`);
  t.true(accuracy >= 0.65, `mean accuracy: ${accuracy}`);
  t.true(wrongAndSure <= 0.06, `wrong and sure: ${wrongAndSure}`);
});
