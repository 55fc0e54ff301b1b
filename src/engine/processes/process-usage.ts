/** What the system knows about the work of another process. */
import { readFileSync } from 'node:fs';

/** A process at one moment. */
export interface ProcessUsage {
  /** Whether its main thread runs or waits for a core; otherwise it sleeps or is stopped. */
  readonly runnable: boolean;
  /** CPU time of all its threads so far, milliseconds. */
  readonly cpu: number;
}

// The unit of CPU times in /proc, whatever unit the kernel itself uses.
const TICKS_PER_SECOND = 100;

/** The usage of a process now; undefined where there is no /proc, or no such process. */
export function processUsage(pid: number): ProcessUsage | undefined {
  try {
    // The name in parentheses may hold anything; the fields after it are plain.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { runnable: fields[0] === 'R', cpu: ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND };
  } catch {
    return undefined;
  }
}
