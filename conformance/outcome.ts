/** How a check ends whose promise is not kept or cannot be tested. A check that returns has found its promise kept. */

/** The deployment does not do what the contract says; the message says what it does. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise';
}

/** The check cannot be made on this deployment; the message says why. */
export class Skipped extends Error {
  override readonly name = 'Skipped';
}
