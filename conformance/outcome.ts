/** What a check ends with when the promise is not kept, or cannot be tried. A check that returns has found it kept. */

/** The deployment does not do what the contract says; the message says what it does. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise';
}

/** The check cannot be made here; the message says why. */
export class Skipped extends Error {
  override readonly name = 'Skipped';
}
