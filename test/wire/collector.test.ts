/** What was held and is let go leaves the process at once, not when V8 next has a reason to collect. */
import { memoryUsage } from 'node:process';
import test from 'ava';
import { createCollector } from '../../src/wire/watchdog.ts';

test('memory that was let go is given back to the system', async (t) => {
  let needed = false;
  const collect = createCollector(() => needed);
  let held: object[] | undefined = Array.from({ length: 1_000_000 }, (_, index) => ({ index, list: [`x${index}`] }));
  const full = memoryUsage.rss();
  collect();
  t.is(held.length, 1_000_000);
  held = undefined;
  // A turn of the event loop, so that no register holds it.
  await new Promise((resolve) => setTimeout(resolve, 10));
  needed = true;
  collect();
  t.true(memoryUsage.rss() < full - 80 * 1024 * 1024, `${full} -> ${memoryUsage.rss()}`);
});

test('it does so now and then alone', (t) => {
  let asked = 0;
  const collect = createCollector(() => {
    asked += 1;
    return true;
  });
  for (let count = 0; count < 1000; count += 1) collect();
  t.is(asked, 1);
});
