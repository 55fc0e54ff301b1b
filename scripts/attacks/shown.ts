/** What an attack of the table shows: the figure that the audit reported, and whether the defect is still there. */
import type { TestRedis } from '../../test/support/redis.ts';
import type { Target } from './target.ts';

/** What an attack works with. */
export interface Scene {
  readonly target: Target;
  /** The Redis of the service, for a defect that asks for one. */
  readonly redis?: TestRedis;
}

/** What an attack showed. */
export interface Shown {
  /** In words, for a cell of the page. */
  readonly figure: string;
  /** Whether the defect is there. The effect on a neighbour is judged separately. */
  readonly defect: boolean;
}

/** Attacks for so many seconds, or up to three times as many, from 127.0.0.0/8, and leaves nothing open. */
export type Show = (scene: Scene, seconds: number) => Promise<Shown>;

/** Waits for so many milliseconds. */
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls `work` again and again until the time is over. */
export async function until(seconds: number, work: () => Promise<unknown>): Promise<void> {
  const ends = performance.now() + seconds * 1000;
  while (performance.now() < ends) await work();
}
