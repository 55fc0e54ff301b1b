/**
 * The room for one process more than there are engines: what loads models beside those that serve takes turns in it.
 */

/** The room. */
export interface SparePlace {
  /** Whether somebody is in it or waits for it. */
  readonly taken: boolean;
  /** Runs a task once everybody before has left; the room is taken until its promise settles. */
  use(task: () => Promise<void>): Promise<void>;
}

/** An empty room. */
export function createSparePlace(): SparePlace {
  let last = Promise.resolve();
  let users = 0;
  return {
    get taken() {
      return users > 0;
    },
    use(task) {
      users++;
      last = last.then(task).finally(() => {
        users--;
      });
      return last;
    },
  };
}
