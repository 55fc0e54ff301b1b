/** A clock that stands still while a busy machine keeps a process from running: bounds of time then hold anywhere. */
import { readFileSync } from 'node:fs';

/** Milliseconds that this process could have run and did not; 0 where the system does not say. */
function waited(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6;
  } catch {
    return 0;
  }
}

/** Has `performance.now()` of this process go by that clock from here on. */
export function goByOwnTime(): void {
  const read = performance.now.bind(performance);
  performance.now = () => read() - waited();
}
