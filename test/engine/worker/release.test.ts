/** What a process no longer uses goes back to the system. */
import { execFileSync } from 'node:child_process';
import test from 'ava';
import { release } from '../../../src/engine/worker/release.ts';

/**
 * Prints the resident MiB before and after a release. Of 128 MiB in small blocks, one block in ten stays in use and
 * keeps the others' memory in gaps.
 */
const SCRIPT = `
  import { releaseSpare } from './src/engine/worker/release.ts';
  const resident = () => process.memoryUsage.rss() / 2 ** 20;
  let blocks = Array.from({ length: 4096 }, () => new Uint8Array(2 ** 15).fill(1));
  blocks = blocks.filter((_, i) => i % 10 === 0);
  gc();
  const before = resident();
  await releaseSpare();
  console.log(JSON.stringify([before, resident(), blocks.length]));
`;

test('gaps between blocks that are in use go back to the system', (t) => {
  const output = execFileSync(
    process.execPath,
    ['--expose-gc', '--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', SCRIPT],
    { encoding: 'utf8', env: { ...process.env, GLIBC_TUNABLES: 'glibc.malloc.arena_max=1' } },
  );
  const [before, after] = JSON.parse(output) as [number, number];
  t.true(before - after > 50, `${before} MiB, then ${after}`);
});

test('a large buffer is empty once it is released, and one that shares its memory is left as it is', (t) => {
  const whole = new Uint8Array(1 << 20);
  release(whole);
  t.is(whole.length, 0);
  const part = new Uint8Array(new ArrayBuffer(1 << 20), 0, 1000);
  release(part);
  t.is(part.length, 1000);
});
