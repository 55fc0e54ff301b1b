import test from 'ava';
import { createWallClock } from '../../../src/wire/traces/wall-clock.ts';

test('later is never earlier, over the ends of milliseconds and seconds', (t) => {
  const clock = createWallClock();
  const nanoseconds = (milliseconds: number): bigint => {
    const [seconds, rest] = clock.at(milliseconds);
    return BigInt(seconds) * 1_000_000_000n + BigInt(rest);
  };
  const start = nanoseconds(0);
  let last = start;
  for (let step = 1; step <= 500_000; step++) {
    const now = nanoseconds(step * 0.0047);
    if (now < last) t.fail(`${step * 0.0047} ms: ${now - last} ns`);
    last = now;
  }
  t.is((last - start + 500n) / 1000n, 2_350_000n);
});
