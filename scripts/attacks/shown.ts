/** What an attack of the table shows: the figure that the audit was about, and whether it is still as bad as that. */
import type { TestRedis } from '../../test/support/redis.ts';
import type { Target } from './target.ts';

/** What an attack has to work with. */
export interface Scene {
  readonly target: Target;
  /** The store, for an attack that asked for one of its own. */
  readonly redis?: TestRedis;
}

export interface Shown {
  /** In words, for a cell of the page. */
  readonly figure: string;
  /** Whether the defect is there. What a neighbour suffers is judged beside it. */
  readonly defect: boolean;
}

/** Attacks for so many seconds, and no longer than three times that. From 127.0.0.1, leaving nothing open. */
export type Show = (scene: Scene, seconds: number) => Promise<Shown>;

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls `work` again and again until the time is over. */
export async function until(seconds: number, work: () => Promise<unknown>): Promise<void> {
  const ends = performance.now() + seconds * 1000;
  while (performance.now() < ends) await work();
}
