/** How many requests are under way, with a clock of the test's own; and results in order. */
import test from 'ava';
import { inOrder, Pace } from '../../../src/cli/decide/pace.ts';

test('the window grows while all is answered, and is halved once for what was sent together', async (t) => {
  const never = new AbortController();
  let now = 0;
  const pace = new Pace(20, never.signal, () => now);
  const round = async (): Promise<readonly number[]> => {
    now++;
    const turns = await Promise.all(Array.from({ length: pace.window }, (_, place) => pace.turn(place)));
    now++;
    return turns;
  };
  const windows = [];
  for (let i = 0; i < 5; i++) {
    windows.push(pace.window);
    for (const _ of await round()) pace.answered();
  }
  t.deepEqual(windows.slice(0, 2), [2, 3]);
  t.is(pace.window, Math.min(20, pace.window));
  const grown = pace.window;
  t.true(grown > 4, String(grown));
  for (const began of await round()) pace.refused(began, 0);
  t.is(pace.window, Math.floor(grown / 2));
  for (let i = 0; i < 40; i++) for (const began of await round()) pace.refused(began, 0);
  t.is(pace.window, 1);
  for (let i = 0; i < 400; i++) for (const _ of await round()) pace.answered();
  t.is(pace.window, 20);
});

test('whoever stands first is next, nobody goes while the service asks to wait, and an end is an end', async (t) => {
  const stop = new AbortController();
  const pace = new Pace(1, stop.signal);
  const first = await pace.turn(5);
  const order: number[] = [];
  const waiting = [9, 7, 8].map((place) =>
    pace.turn(place).then(() => {
      order.push(place);
      pace.answered();
    }),
  );
  const began = performance.now();
  pace.refused(first, 60);
  await Promise.all(waiting);
  t.true(performance.now() - began >= 59);
  t.deepEqual(order, [7, 8, 9]);
  await pace.turn(1);
  const late = pace.turn(2);
  stop.abort(new Error('over'));
  await t.throwsAsync(late, { message: 'over' });
  await t.throwsAsync(pace.turn(3), { message: 'over' });
  pace.answered();
});

const ahead = { things: 8, weight: 100, weigh: () => 1 };

async function* numbers(count: number, taken: (value: number) => void = () => {}): AsyncGenerator<number> {
  for (let value = 0; value < count; value++) {
    taken(value);
    yield value;
  }
}

test('results come in order, whatever is done first, and no more is read ahead than was said', async (t) => {
  let read = 0;
  let given = 0;
  let most = 0;
  const work = async (value: number): Promise<number> => {
    await new Promise((resolve) => setTimeout(resolve, value % 7 === 0 ? 12 : 1));
    return value;
  };
  const source = numbers(100, () => {
    read++;
    most = Math.max(most, read - given);
  });
  const results: number[] = [];
  for await (const value of inOrder(source, work, ahead)) {
    given++;
    results.push(value);
  }
  t.deepEqual(
    results,
    Array.from({ length: 100 }, (_, value) => value),
  );
  t.true(most > 4 && most <= 10, String(most));
  // What weighs much is held alone.
  let alone = 0;
  const heavy = { ...ahead, weigh: () => 100 };
  const begun = async (value: number) => {
    alone += 1;
    return value;
  };
  for await (const value of inOrder(numbers(5), begun, heavy)) t.true(alone <= value + 2);
});

test('what fails comes in its place, after the results before it', async (t) => {
  const results: number[] = [];
  const work = async (value: number): Promise<number> => {
    if (value === 3) throw new Error('three');
    await new Promise((resolve) => setTimeout(resolve, 5));
    return value;
  };
  await t.throwsAsync(
    async () => {
      for await (const value of inOrder(numbers(10), work, ahead)) results.push(value);
    },
    { message: 'three' },
  );
  t.deepEqual(results, [0, 1, 2]);
});

test('a result that is there is given although the source is silent', async (t) => {
  async function* silent(): AsyncGenerator<number> {
    yield 1;
    await new Promise(() => {});
  }
  const results = inOrder(silent(), async (value) => value, ahead);
  t.deepEqual(await results.next(), { value: 1, done: false });
});
