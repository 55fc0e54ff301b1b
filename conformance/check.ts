/** What a check of the kit is: data that says what is promised, and a way to try it. */
import type { Kit } from './kit.ts';

/** What a check needs beside the address. Without it the check is skipped, which is not the same as passed. */
export type Need = 'key' | 'other-key';

/** One promise of the contract. */
export interface Check {
  /** Its name for reports and `--skip`: the part and the promise, such as `decisions.order`. */
  readonly id: string;
  /** The section of the contract. */
  readonly section: string;
  /** What the contract promises, as a sentence. */
  readonly promise: string;
  /** What the check does to find out, for `umpire conformance --list`. */
  readonly tried: string;
  readonly needs?: readonly Need[];
  /** Resolves if the promise is kept. Throws BrokenPromise, or Skipped where it cannot be tried. */
  run(kit: Kit): Promise<void>;
}
