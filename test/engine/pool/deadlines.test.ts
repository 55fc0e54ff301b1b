/** One timer for all deadlines. */
import test from 'ava';
import { Deadlines } from '../../../src/engine/pool/job.ts';

test('items whose time is over are told in order, and removed ones never', async (t) => {
  const passed: string[] = [];
  const deadlines = new Deadlines<{ readonly deadline: number; readonly name: string }>(({ name }) =>
    passed.push(name),
  );
  const now = performance.now();
  const items = [
    { deadline: now + 60, name: 'third' },
    { deadline: now + 20, name: 'first' },
    { deadline: now + 30, name: 'removed' },
    { deadline: now + 40, name: 'second' },
    { deadline: now + 60_000, name: 'far' },
  ];
  for (const each of items) deadlines.add(each);
  const [, , removed, , far] = items;
  if (removed !== undefined) deadlines.remove(removed);
  await new Promise((resolve) => setTimeout(resolve, 300));
  t.deepEqual(passed, ['first', 'second', 'third']);
  t.is(deadlines.size, 1);
  if (far !== undefined) deadlines.remove(far);
  t.is(deadlines.size, 0);
});

test('a deadline that is already over is told soon', async (t) => {
  const passed = Promise.withResolvers<void>();
  new Deadlines(() => passed.resolve()).add({ deadline: performance.now() - 5 });
  await passed.promise;
  t.pass();
});
