/** Watches the deadlines of all jobs with one timer, set for the earliest. */
import { createHeap } from './heap.ts';

/** Something that is worthless after `deadline`, milliseconds on the clock of `performance.now()`. */
export interface Due {
  readonly deadline: number;
}

/** The deadlines being watched. */
export interface Deadlines<T extends Due> {
  add(item: T): void;
  remove(item: T): void;
  readonly size: number;
}

// The longest delay that a timer takes, milliseconds.
const MAX_TIMER = 2 ** 31 - 1;

/**
 * Calls `passed` once for every item whose deadline passes before it is removed; the item is then no longer watched.
 */
export function createDeadlines<T extends Due>(passed: (item: T) => void): Deadlines<T> {
  const heap = createHeap<T>((a, b) => a.deadline < b.deadline);
  let timer: NodeJS.Timeout | undefined;
  let timerAt = Number.POSITIVE_INFINITY;

  const arm = (): void => {
    const next = heap.peek()?.deadline ?? Number.POSITIVE_INFINITY;
    // A timer that fires too early for its successor costs one wake-up; setting it anew for every job would cost more.
    if (next >= timerAt) return;
    clearTimeout(timer);
    timerAt = next;
    timer = setTimeout(fire, Math.min(MAX_TIMER, Math.max(0, Math.ceil(next - performance.now()))));
  };

  const fire = (): void => {
    timerAt = Number.POSITIVE_INFINITY;
    timer = undefined;
    const now = performance.now();
    for (let first = heap.peek(); first !== undefined && first.deadline <= now; first = heap.peek()) {
      heap.pop();
      passed(first);
    }
    arm();
  };

  return {
    add(item) {
      heap.push(item);
      arm();
    },
    remove(item) {
      heap.remove(item);
      if (heap.size > 0) return;
      // Nothing to wait for: the timer must not keep the process alive.
      clearTimeout(timer);
      timerAt = Number.POSITIVE_INFINITY;
    },
    get size() {
      return heap.size;
    },
  };
}
