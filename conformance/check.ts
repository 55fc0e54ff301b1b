/** What a check of the kit is: data that states a promise of the contract, and a function that tests it. */
import type { Kit } from './kit.ts';

/** What a check needs beside the address. Without it the check is skipped, and does not count as passed. */
export type Need = 'key' | 'other-key';

/** One promise of the contract, and how it is tested. */
export interface Check {
  /** Its name, for reports and `--skip`: a part of the contract and the promise, such as `decisions.order`. */
  readonly id: string;
  /** The section of docs/contract.md that makes the promise. */
  readonly section: string;
  /** The promise, as a sentence without its full stop. */
  readonly promise: string;
  /** What the check sends, for `umpire conformance --list`. */
  readonly tried: string;
  readonly needs?: readonly Need[];
  /** Resolves if the promise is kept. Throws BrokenPromise if not, and Skipped where it cannot be tested. */
  run(kit: Kit): Promise<void>;
}
