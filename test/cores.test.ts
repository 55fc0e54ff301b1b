/** The cores that a container's quota leaves. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { readConfig } from '../src/config.ts';
import { usableCores } from '../src/cores.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const cores = availableParallelism();

for (const [quota, expected] of [
  ['50000 100000', 1],
  ['150000 100000', 1],
  ['200000 100000', Math.min(2, cores)],
  ['99900000 100000', cores],
  ['max 100000', cores],
] as const) {
  test(`version 2 with cpu.max ${quota}`, (t) => {
    const root = temporaryFolder();
    writeFileSync(join(root, 'cpu.max'), `${quota}\n`);
    t.is(usableCores(root), expected);
  });
}

for (const [quota, expected] of [
  ['50000', 1],
  ['150000', 1],
  ['-1', cores],
] as const) {
  test(`version 1 with a quota of ${quota}`, (t) => {
    const root = temporaryFolder();
    mkdirSync(join(root, 'cpu'));
    writeFileSync(join(root, 'cpu/cpu.cfs_quota_us'), `${quota}\n`);
    writeFileSync(join(root, 'cpu/cpu.cfs_period_us'), '100000\n');
    t.is(usableCores(root), expected);
  });
}

test('without cgroups all cores count, and so many engines are the default', (t) => {
  t.is(usableCores(join(temporaryFolder(), 'none')), cores);
  t.is(readConfig({}).engines, usableCores());
});
